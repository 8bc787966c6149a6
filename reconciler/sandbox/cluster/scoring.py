"""Which of the nodes that all filters allow is best: kube-scheduler's scores, with its weights.

LeastAllocated, TaintToleration (PreferNoSchedule) and preferred NodeAffinity, each 0 to 100.
Source: pkg/scheduler/framework/plugins, default weights of Kubernetes 1.36.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from reconciler.model.cluster import Taint
from reconciler.model.frozen import Labels
from reconciler.planner.placement.classes import PodClass
from reconciler.planner.placement.simulation import Simulation

Scores = NDArray[np.float64]
_TAINT_WEIGHT = 3.0
_AFFINITY_WEIGHT = 2.0
_FULL = 100.0


def score_rows(sim: Simulation, pod_class: PodClass, soft: "SoftView") -> Scores:
    """A score per row; higher is better."""
    return _least_allocated(sim, pod_class) + soft.scores(sim, pod_class)


def _least_allocated(sim: Simulation, pod_class: PodClass) -> Scores:
    """The mean share of CPU and memory that stays free, in percent."""
    offers = np.maximum(sim.offers[:, :2], 1)
    left = np.clip(sim.free[:, :2] - pod_class.requests[:2], 0, None)
    return np.asarray((left / offers).mean(axis=1) * _FULL, dtype=np.float64)


class SoftView:
    """Labels and soft taints of the rows, which the simulation's kinds leave out.

    Args:
        labels: Of each row.
        taints: Of each row; only PreferNoSchedule counts.
    """

    def __init__(self, labels: Sequence[Labels], taints: Sequence[tuple[Taint, ...]]) -> None:
        self._labels = labels
        self._soft = [tuple(t for t in row if t.effect == "PreferNoSchedule") for row in taints]
        self._known: dict[int, Scores | None] = {}

    def scores(self, sim: Simulation, pod_class: PodClass) -> Scores | float:
        """What soft taints and preferences add per row; 0 when there are none."""
        number = pod_class.number
        if number not in self._known:
            self._known[number] = self._compute(sim, pod_class)
        known = self._known[number]
        return 0.0 if known is None else known

    def _compute(self, sim: Simulation, pod_class: PodClass) -> Scores | None:
        spec = pod_class.spec
        if not any(self._soft) and not spec.node_preferences:
            return None
        intolerable = np.array(
            [
                sum(not any(t.tolerates(taint) for t in spec.tolerations) for taint in row)
                for row in self._soft
            ],
            dtype=np.float64,
        )
        preferred = np.array(
            [
                sum(p.weight for p in spec.node_preferences if p.term.matches(labels, name))
                for labels, name in zip(self._labels, sim.names, strict=True)
            ],
            dtype=np.float64,
        )
        taints = _FULL - _normalised(intolerable)
        return _TAINT_WEIGHT * taints + _AFFINITY_WEIGHT * _normalised(preferred)


def _normalised(values: Scores) -> Scores:
    """Scaled so that the largest is 100; all zero stays all zero."""
    largest = values.max(initial=0.0)
    return np.asarray(values * (_FULL / largest) if largest else values)
