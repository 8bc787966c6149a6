"""Generated demand: a mix of workloads, described in a small file and drawn from a seed."""

from reconciler.simulation.mixes.generate import generated
from reconciler.simulation.mixes.schema import Mix, read_mix

__all__ = ["Mix", "generated", "read_mix"]
