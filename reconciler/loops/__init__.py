"""Observe, decide, act, report, wait: loops over ports, and nothing else."""
