"""One suite per port."""
