"""Health checks, metrics and a status page over HTTP; nothing here can change anything."""
