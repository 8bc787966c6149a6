"""One file per reason for which a node is disrupted; `engine` says in which order they run."""
