"""Instances of a fleet that need a look: stuck, orphaned, protected, or out of service."""
