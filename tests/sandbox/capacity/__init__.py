"""The capacity loop as a process over loopback AWS and a simulated cluster."""
