"""Metrics of the descheduler: its evictions."""

from typing import get_args

from prometheus_client import CollectorRegistry, Counter

from reconciler.model.actions import EvictPod, PodPolicy
from reconciler.model.outcome import Outcome
from reconciler.telemetry import metrics as names


class DeschedulerMetrics:
    """The results of evictions, by the descheduler's policy.

    Args:
        registry: The registry that serves them.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._evictions = Counter(
            names.DESCHEDULER_EVICTIONS.removesuffix("_total"),
            "Evictions by the descheduler, by its policy and by result.",
            ["policy", "result"],
            registry=registry,
        )
        for policy in get_args(PodPolicy):
            self._evictions.labels(policy, "applied")

    def count(self, outcome: Outcome) -> None:
        """Count one action, if the descheduler decided on it."""
        action = outcome.action
        if isinstance(action, EvictPod) and action.pod_policy is not None:
            self._evictions.labels(action.pod_policy, outcome.kind).inc()
