"""Limits of what one pod may have to be planned for, so that the cost of each pod is bounded.

An object of 1 MiB, which the API server accepts, can hold 8,000 spread constraints or 20,000
resource names. Each limit is several times what the largest real workloads have; kube-scheduler has
none.
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
"""Init containers included; pods with more than about thirty are not seen in practice."""
SPREAD_MAX = 16
"""Topology spread constraints: more than three topologies are rare."""
POD_TERMS_MAX = 32
"""Terms about other pods: affinity, anti-affinity and preferences, each counted separately."""
NODE_TERMS_MAX = 64
"""Node affinity terms: required and preferred ones, each counted separately."""
LINES_MAX = 256
"""Labels and expressions of one kind of selector of the pod, in total."""
VALUES_MAX = 4096
"""Values of one kind of selector, in total: some operators list the names of nodes."""
TOLERATIONS_MAX = 128
HOST_PORTS_MAX = 128
RESOURCES_MAX = 32
"""Names of resources other than CPU, memory and storage: a partitioned GPU has about ten."""
LABELS_MAX = 128
"""Labels of a pod: the API server limits their number by the size of the object alone."""
SPEC_BYTES_MAX = 128 * 1024
"""JSON of those parts of a spec that decisions depend on: texts in it, such as the values of node
affinity, are as long as the API server takes them, and are kept for as long as the pod lives."""
VOLUMES_MAX = 256
"""EC2 attaches at most 128 volumes to an instance."""
NAME_MAX = 253
"""Characters of an object's name, as the API server allows them. It does not limit the names that a
pod gives for its claims: a claim of a longer name can never exist. Other names that an object gives
are as long as the API server takes them, and what is beyond this is not kept: nothing has them."""

HANDLE_MAX = 64
"""Characters of an EBS volume's id: those of EC2 have 21."""
ACCESS_MODES_MAX = 8
"""Different access modes of one claim or volume: there are four."""

BASIC = frozenset({"cpu", "memory", "ephemeral-storage", "pods"})
"""Resources that count regardless of how many others a pod has."""

Size = tuple[int, int, int]
"""Number of terms, and of the lines and values of their selectors."""


def beyond(count: int, most: int, what: str) -> str:
    """Return what exceeds a limit, in words; empty when the count is within it."""
    return f"has {count:,} {what}, at most {most:,} are planned for" if count > most else ""


def size_beyond(size: Size, terms_max: int, what: str) -> str:
    """Return the same for terms, their lines or their values, whichever exceeds its limit first."""
    terms, _, _ = size
    return beyond(terms, terms_max, what) or selector_beyond(size, what)


def selector_beyond(size: Size, what: str) -> str:
    """Return the same for the lines or the values of selectors."""
    _, lines, values = size
    return beyond(lines, LINES_MAX, f"lines in its {what}") or beyond(
        values, VALUES_MAX, f"values in its {what}"
    )


def label_selector_size(wire: LabelSelectorWire | None) -> Size:
    """Return the size of a label selector, as one term."""
    if wire is None:
        return 1, 0, 0
    _, lines, values = _lines_size(wire.match_expressions or ())
    return 1, lines + len(wire.match_labels or {}), values


def node_term_size(wire: NodeSelectorTermWire) -> Size:
    """Return the size of a node selector term."""
    return _lines_size(chain(wire.match_expressions or (), wire.match_fields or ()))


def total(sizes: Iterable[Size]) -> Size:
    """Return the sum of sizes."""
    terms = lines = values = 0
    for one in sizes:
        terms, lines, values = terms + one[0], lines + one[1], values + one[2]
    return terms, lines, values


def _lines_size(lines: Iterable[RequirementWire | NodeRequirementWire]) -> Size:
    counts = [len(line.values or ()) for line in lines]
    return 1, len(counts), sum(counts)
