"""Scores the nodes that all filters allow: kube-scheduler's scores, with its weights.

LeastAllocated here; the soft terms (taints, node and pod affinity, spread) are the planner's.
Source: pkg/scheduler/framework/plugins, default weights of Kubernetes 1.36.
"""

import numpy as np
from numpy.typing import NDArray

from reconciler.planner.placement.classes import PodClass
from reconciler.planner.placement.preferences import Preferences
from reconciler.planner.placement.simulation import Simulation

_FULL = 100.0


def score_rows(
    sim: Simulation, pod_class: PodClass, preferences: Preferences
) -> NDArray[np.float64]:
    """Return a score per row; higher is better. Each row is one of the nodes of `preferences`."""
    return _least_allocated(sim, pod_class) + preferences.scores(pod_class)


def _least_allocated(sim: Simulation, pod_class: PodClass) -> NDArray[np.float64]:
    """Return the mean share of CPU and memory that stays free, in percent."""
    allocatable = np.maximum(sim.allocatable[:, :2], 1)
    left = np.clip(sim.free[:, :2] - pod_class.requests[:2], 0, None)
    return np.asarray((left / allocatable).mean(axis=1) * _FULL, dtype=np.float64)
