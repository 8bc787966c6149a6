"""Demand as JSON lines, and CSV traces: `read_demand(stream, name)`, `encode_line(line)`."""

from reconciler.records.demand.anonymous import Anonymiser
from reconciler.records.demand.changes import ObservedDemand, changes, seen_in
from reconciler.records.demand.encoding import encode_line
from reconciler.records.demand.folding import (
    folded,
    last_moment,
    recorded_from,
    recorded_until,
    with_bounds,
)
from reconciler.records.demand.lines import LineDecoder
from reconciler.records.demand.reading import DEFAULT_LIMITS, Limits, read_demand, read_recorded
from reconciler.records.demand.traces import TraceOptions, read_trace

__all__ = [
    "DEFAULT_LIMITS",
    "Anonymiser",
    "Limits",
    "LineDecoder",
    "ObservedDemand",
    "TraceOptions",
    "changes",
    "encode_line",
    "folded",
    "last_moment",
    "read_demand",
    "read_recorded",
    "read_trace",
    "recorded_from",
    "recorded_until",
    "seen_in",
    "with_bounds",
]
