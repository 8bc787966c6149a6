"""The parts of the capacity loop, joined."""
