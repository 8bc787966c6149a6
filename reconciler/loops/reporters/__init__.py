"""What is reported of a cycle, and to whom: the log, Kubernetes Events, a chat, traces, recordings."""
