"""`config/range` and `config/type` over two keys: limits in the wrong order, keys that disagree."""

from collections.abc import Callable, Iterator
from typing import TypeVar

from pydantic_core import PydanticCustomError

from reconciler.config import scalars
from reconciler.config.faults import RANGE, TYPE
from reconciler.config.rules.document import Document, FleetNode, Location
from reconciler.config.tree import Mapping, Node, Scalar, Sequence, text_of
from reconciler.model.errors import Problem

T = TypeVar("T")


def check_capacities(document: Document) -> Iterator[Problem]:
    """Check every pair of keys that must agree."""
    root = document.root
    cluster, old = root.text("cluster"), root.text("cluster_name")
    if cluster is not None and old is not None and cluster != old:
        message = "cluster and cluster_name differ; give one"
        yield document.problem(RANGE, ("cluster_name",), message)
    yield from _check_balancing(document)
    for fleet in document.fleets():
        yield from _check_order(document, fleet)
        yield from _check_group(document, fleet)
        yield from _check_lifecycle(document, fleet)
        if fleet.entry.states("terminate_after") and not fleet.entry.states("expire_after"):
            message = "terminate_after does nothing without expire_after"
            yield document.problem(RANGE, (*fleet.location, "terminate_after"), message)
    for location, mapping in _with_regions(document):
        yield from _check_regions(document, location, mapping)
    yield from _check_types_once(document)
    for name, size in document.own_sizes().items():
        types = size.get("instance_types")
        if isinstance(types, Sequence) and not types.items:
            location = ("sizes", name, "instance_types")
            yield document.problem(RANGE, location, "needs at least one instance type")


def _check_balancing(document: Document) -> Iterator[Problem]:
    """Check that there are no labels of similar fleets while fleets are not balanced."""
    root = document.root
    if _is_true(root.get("balance_similar_groups")):
        return
    for key in ("balancing_ignore_labels", "balancing_labels"):
        if root.states(key):
            message = f"{key} does nothing without balance_similar_groups: true"
            yield document.problem(RANGE, (key,), message)


def _is_true(node: Node | None) -> bool:
    try:
        return isinstance(node, Scalar) and scalars.boolean(node.text)
    except PydanticCustomError:
        return False


def _check_types_once(document: Document) -> Iterator[Problem]:
    """Check that an instance type is in a list only once: the module refuses repeats."""
    sizes = ((("sizes", name), size) for name, size in document.own_sizes().items())
    fleets = ((fleet.location, fleet.entry) for fleet in document.fleets())
    for location, mapping in (*sizes, *fleets):
        seen: set[str] = set()
        for index, item in mapping.items("instance_types"):
            name = text_of(item.value)
            if name is not None and name in seen:
                message = f"{name} is already in the list"
                yield document.problem(RANGE, (*location, "instance_types", index), message)
            seen.add(name or "")


def _number(fleet: Mapping, key: str) -> int | None:
    """Return a whole number, if it is one; its own faults are reported elsewhere."""
    return _read(scalars.integer, fleet, key)


def _read(parse: Callable[[object], T], mapping: Mapping, key: str) -> T | None:
    """Return the value under `key`, if it is valid."""
    node = mapping.get(key)
    if not isinstance(node, Scalar) or text_of(node) is None:
        return None
    try:
        return parse(node.text)
    except PydanticCustomError:
        return None


def _check_order(document: Document, fleet: FleetNode) -> Iterator[Problem]:
    """Check min_capacity <= initial_node_count <= max_capacity, with either name of the first."""
    entry, location = fleet.entry, fleet.location
    lowest, old = _number(entry, "min_capacity"), _number(entry, "capacity_min")
    if lowest is not None and old is not None and lowest != old:
        message = f"capacity_min {old} and min_capacity {lowest} differ; give one"
        yield document.problem(RANGE, (*location, "capacity_min"), message)
    lowest = old if lowest is None else lowest
    first, highest = _number(entry, "initial_node_count"), _number(entry, "max_capacity")
    if highest is None:
        return
    if lowest is not None and lowest > highest:
        message = f"max_capacity {highest} is less than min_capacity {lowest}"
        yield document.problem(RANGE, (*location, "max_capacity"), message)
    if first is not None and first > highest:
        message = f"initial_node_count {first} is more than max_capacity {highest}"
        yield document.problem(RANGE, (*location, "initial_node_count"), message)


def _check_group(document: Document, fleet: FleetNode) -> Iterator[Problem]:
    """Check that `provider: asg` and `auto_scaling_group` are stated together."""
    provider = fleet.entry.text("provider") or "ec2-fleet"
    group = fleet.entry.states("auto_scaling_group")
    if provider == "asg" and not group:
        message = "auto_scaling_group is missing, provider: asg needs it"
        yield document.problem(TYPE, (*fleet.location, "provider"), message)
    elif provider == "ec2-fleet" and group:
        message = "auto_scaling_group needs provider: asg"
        yield document.problem(RANGE, (*fleet.location, "auto_scaling_group"), message)


def _check_lifecycle(document: Document, fleet: FleetNode) -> Iterator[Problem]:
    """Check that `lifecycle` and `spot` agree, where both are stated."""
    spot, lifecycle = _read(scalars.boolean, fleet.entry, "spot"), fleet.entry.text("lifecycle")
    if spot is not None and lifecycle is not None and (lifecycle == "spot") != spot:
        message = f"spot is {str(spot).lower()} and lifecycle {lifecycle}; give one of them"
        yield document.problem(RANGE, (*fleet.location, "lifecycle"), message)


def _with_regions(document: Document) -> Iterator[tuple[Location, Mapping]]:
    """Yield every mapping that may have `regions`."""
    yield (), document.root
    for name, sector in document.sectors():
        yield ("sectors", name), sector
    for fleet in document.fleets():
        yield fleet.location, fleet.entry


def _check_regions(document: Document, location: Location, node: Mapping) -> Iterator[Problem]:
    """Check that a Region is in the order of preference only once."""
    seen: set[str] = set()
    for index, item in node.items("regions"):
        region = text_of(item.value)
        if region is not None and region in seen:
            message = f"{region} is already in the list"
            yield document.problem(RANGE, (*location, "regions", index), message)
        seen.add(region or "")
