"""How much one pod may ask for; more is not planned, so that no pod's cost is without a bound.

An object of 1 MiB, which the API server admits, holds 8,000 spread constraints or 20,000 resource
names. Each limit is several times what the largest real workloads have; kube-scheduler has none.
"""

from collections.abc import Iterable
from itertools import chain

from reconciler.records.kubernetes.fields import (
    LabelSelectorWire,
    NodeRequirementWire,
    NodeSelectorTermWire,
    RequirementWire,
)

CONTAINERS_MAX = 256
"""Init containers included; pods of more than about thirty are not seen in practice."""
SPREAD_MAX = 16
"""Topology spread constraints: there are rarely more than three topologies to spread over."""
POD_TERMS_MAX = 32
"""Terms about other pods, of affinity, of anti-affinity and of preferences, each for itself."""
NODE_TERMS_MAX = 64
"""Node affinity terms, the required and the preferred ones each for themselves."""
LINES_MAX = 256
"""Labels and expressions of one kind of selector of the pod, added up."""
VALUES_MAX = 4096
"""Values of one kind of selector, added up: some operators list the names of nodes."""
TOLERATIONS_MAX = 128
HOST_PORTS_MAX = 128
RESOURCES_MAX = 32
"""Names of resources beside CPU, memory and storage: a GPU in slices has about ten."""
VOLUMES_MAX = 256
"""EC2 attaches at most 128 volumes to an instance."""

BASIC = frozenset({"cpu", "memory", "ephemeral-storage", "pods"})
"""Resources that count however many others a pod names."""

Size = tuple[int, int, int]
"""Terms, and the lines and values of their selectors."""


def beyond(count: int, most: int, what: str) -> str:
    """What is too much, in words; empty when the count is within its limit."""
    return f"has {count:,} {what}, at most {most:,} are planned for" if count > most else ""


def size_beyond(size: Size, terms_max: int, what: str) -> str:
    """The same about terms, their lines or their values, whichever is beyond first."""
    terms, lines, values = size
    return (
        beyond(terms, terms_max, what)
        or beyond(lines, LINES_MAX, f"lines in its {what}")
        or beyond(values, VALUES_MAX, f"values in its {what}")
    )


def label_selector_size(wire: LabelSelectorWire | None) -> Size:
    """A label selector as one term."""
    if wire is None:
        return 1, 0, 0
    _, lines, values = _lines_size(wire.match_expressions or ())
    return 1, lines + len(wire.match_labels or {}), values


def node_term_size(wire: NodeSelectorTermWire) -> Size:
    """A node selector term."""
    return _lines_size(chain(wire.match_expressions or (), wire.match_fields or ()))


def total(sizes: Iterable[Size]) -> Size:
    """Sizes added up."""
    terms = lines = values = 0
    for one in sizes:
        terms, lines, values = terms + one[0], lines + one[1], values + one[2]
    return terms, lines, values


def _lines_size(lines: Iterable[RequirementWire | NodeRequirementWire]) -> Size:
    counts = [len(line.values or ()) for line in lines]
    return 1, len(counts), sum(counts)
