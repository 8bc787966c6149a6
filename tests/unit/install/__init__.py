"""The install, rendered."""
