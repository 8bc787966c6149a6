"""The values of the domain. Standard library only; nothing here does I/O, waits or decides."""
