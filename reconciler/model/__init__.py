"""Values of the domain. Standard library only; nothing here reads, writes, waits or decides."""
