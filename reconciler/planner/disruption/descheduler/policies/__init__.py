"""The policies of the descheduler, one file each: which pods it would evict, and why."""
