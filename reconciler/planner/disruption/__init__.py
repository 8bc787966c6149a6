"""One engine for everything that takes a pod off a node; `engine` says in which order it works."""
