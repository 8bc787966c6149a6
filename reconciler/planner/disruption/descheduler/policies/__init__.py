"""One file per policy of the descheduler: which pods it would evict, and why."""
