"""Metrics of the interruption queue."""

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge

from reconciler.model.notices import NoticeOutcome, settled_by_kind
from reconciler.telemetry import metrics as names


class NoticeMetrics:
    """What came of notices, and whether the queue can be read.

    Args:
        registry: Where they are served from.
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

    def count(self, outcomes: Iterable[NoticeOutcome]) -> None:
        """Count the notices that a cycle dealt with."""
        for (kind, result), count in settled_by_kind(outcomes).items():
            self._notices.labels(kind, result).inc(count)

    def queue_readable(self, *, readable: bool) -> None:
        """The queue can be read, or it cannot."""
        self._readable.set(int(readable))
