"""What all policies share that have nodes go: idleness, drains, moves, limits, reasons."""
