"""What is reported of a cycle, and to whom: log, Kubernetes Events, a chat, traces, recordings."""
