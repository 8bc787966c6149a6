"""The only place that chooses adapters: one file per part of the program."""
