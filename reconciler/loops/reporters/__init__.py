"""Reports of a cycle: to the log, Kubernetes Events, a chat, traces and recordings."""
