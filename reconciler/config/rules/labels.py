"""`labels/reserved`, and labels and taints that the kubelet or the API server would refuse."""

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Final, Literal

from pydantic_core import PydanticCustomError

from reconciler.config.faults import LABELS_RESERVED, NAME_LABEL, quoted
from reconciler.config.rules.document import Document, Location
from reconciler.config.rules.names import label_value_fault
from reconciler.config.terraform import taints_in
from reconciler.config.tree import Mapping, Scalar
from reconciler.model.errors import Problem

OURS: Final = frozenset({"sector", "fleet", "size", "pool_size", "kind", "lifecycle"})
DRAINING: Final = "fleet-reconciler.io/draining"
_KEY: Final = re.compile(
    r"(?:(?P<prefix>[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?)/)?"
    r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?",
    re.ASCII,
)
_KUBERNETES: Final = re.compile(r"(?:.+\.)?(?:kubernetes|k8s)\.io")
_ALLOWED: Final = re.compile(r"(?:.+\.)?(?:kubelet|node)\.kubernetes\.io")


def check_labels(document: Document) -> Iterator[Problem]:
    """Check labels and taints of sectors, fleets and module variables."""
    for location, variables in document.module_variables():
        yield from _check(document, location, variables)
    for name, sector in document.sectors():
        yield from _check(document, ("sectors", name), sector)
    for fleet in document.fleets():
        yield from _check(document, fleet.location, fleet.entry)


def _check(document: Document, location: Location, node: Mapping) -> Iterator[Problem]:
    """Check the labels and taints of one mapping, under their names there."""
    for name in ("labels", "node_labels"):
        for key, entry in node.mapping(name).entries.items():
            value = entry.value.text if isinstance(entry.value, Scalar) else ""
            for code, message in _label_faults(key, value):
                yield document.problem(code, (*location, name, key), message)
    for place, taint in _taints(node):
        for message in _taint_faults(*taint):
            yield document.problem(NAME_LABEL, (*location, *place), message)


def _taints(node: Mapping) -> Iterator[tuple[Location, tuple[str | None, str | None]]]:
    """Yield the key and the value of each taint of one mapping, with their place in it."""
    for name in ("taints", "node_taints"):
        for index, item in node.items(name):
            if isinstance(item.value, Mapping):
                yield (name, index), (item.value.text("key"), item.value.text("value"))
    with suppress(PydanticCustomError):  # reported elsewhere
        for taint in taints_in(node.text("node_taints") or ""):
            yield ("node_taints",), (taint["key"], taint["value"])


def _label_faults(key: str, value: str) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with one label."""
    if key in OURS:
        yield LABELS_RESERVED, f"label {quoted(key)} is reserved: it is set for every node"
    elif _KEY.fullmatch(key) is not None and is_refused_by_kubelet(key):
        yield LABELS_RESERVED, f"label {quoted(key)}: the kubelet refuses to start with it"
    for message in malformed("label", key, value):
        yield NAME_LABEL, message


def malformed(what: Literal["label", "taint"], key: str | None, value: str | None) -> Iterator[str]:
    """Yield why no node can have a label or a taint: the API server refuses its key or value.

    Args:
        what: Which of both.
        key: Its key; None if it states none, which is another fault.
        value: Its value; None or empty if it has none.
    """
    if key is not None and _KEY.fullmatch(key) is None:
        yield f"{quoted(key)} is not a valid {what} key ([prefix/]name)"
    if value and (wrong := label_value_fault(value)) is not None:
        yield wrong


def is_refused_by_kubelet(key: str) -> bool:
    """Return whether a node may not set it on itself (NodeRestriction, kubelet --node-labels)."""
    prefix = key.rpartition("/")[0]
    return _KUBERNETES.fullmatch(prefix) is not None and _ALLOWED.fullmatch(prefix) is None


def _taint_faults(key: str | None, value: str | None) -> Iterator[str]:
    """Yield what is wrong with one taint."""
    if key == DRAINING:
        yield f"taint {DRAINING} marks nodes that are being emptied"
    yield from malformed("taint", key, value)
