"""Taking pods off nodes, and nodes out of the cluster, whatever the reason."""
