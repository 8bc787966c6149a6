"""Makes one Snapshot from the ports; decides nothing about it."""
