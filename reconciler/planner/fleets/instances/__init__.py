"""Instances of fleets with a special state: stuck, orphaned, protected, out of service."""
