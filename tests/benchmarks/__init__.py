"""Benchmarks of the planner: `make bench`, or `python -m tests.benchmarks --help`."""
