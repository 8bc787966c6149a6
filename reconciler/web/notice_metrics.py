"""Metrics of interruptions: the queue, and how soon nodes were empty."""

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from reconciler.model.ids import NodeName
from reconciler.model.notices import NoticeOutcome, settled_by_kind
from reconciler.model.plan import InterruptedNode
from reconciler.telemetry import metrics as names

SECONDS_BUCKETS = (1, 2, 5, 10, 20, 30, 45, 60, 75, 90, 105, 120, 180, 300)


class NoticeMetrics:
    """The results of notices, and whether the queue can be read.

    Args:
        registry: The registry that serves them.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._notices = Counter(
            names.NOTICES.removesuffix("_total"),
            "Notices of the interruption queue that were dealt with, by kind and result.",
            ["kind", "result"],
            registry=registry,
        )
        for result in ("acted", "instance-gone", "expired"):
            self._notices.labels("spot-interruption", result)
        self._readable = Gauge(
            names.QUEUE_READABLE,
            "0 while the interruption queue cannot be read.",
            registry=registry,
        )
        self._readable.set(1)
        self._seconds = Histogram(
            names.INTERRUPTION_SECONDS,
            "From the beginning of an interrupted node's drain to its being empty.",
            buckets=SECONDS_BUCKETS,
            registry=registry,
        )
        self._emptied: set[NodeName] = set()
        """Interrupted nodes that still exist and were counted as empty."""

    def count(self, outcomes: Iterable[NoticeOutcome]) -> None:
        """Count the notices that a cycle handled."""
        for (kind, result), count in settled_by_kind(outcomes).items():
            self._notices.labels(kind, result).inc(count)

    def note_interrupted(self, nodes: Iterable[InterruptedNode]) -> None:
        """Count each interrupted node when it is first seen empty."""
        there = {node.node: node for node in nodes}
        self._emptied &= there.keys()
        for name, interrupted_node in there.items():
            if interrupted_node.empty and name not in self._emptied:
                self._emptied.add(name)
                self._seconds.observe(interrupted_node.seconds)

    def queue_readable(self, *, readable: bool) -> None:
        """Note whether the queue can be read."""
        self._readable.set(int(readable))
