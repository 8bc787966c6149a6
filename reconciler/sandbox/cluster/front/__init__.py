"""The HTTPS server, and what a request passes first: the log, the faults, the control API."""
