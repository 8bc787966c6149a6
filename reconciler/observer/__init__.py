"""From ports to one Snapshot; decides nothing about it."""
