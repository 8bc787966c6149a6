"""The only place that chooses adapters: a folder per part of the program, a file per command."""
