"""Sectors, kinds, sizes and duplicates: whether a fleet fits its sector."""

from collections.abc import Iterator
from typing import Final, TypeAlias

from reconciler.config.faults import (
    DEFAULT_SECTOR,
    DUPLICATE_FLEET,
    RANGE,
    SECTOR_KIND,
    UNKNOWN_SIZE,
    listed,
    quoted,
)
from reconciler.config.rules.document import Document, FleetNode
from reconciler.config.sizes import BUILT_IN_KINDS, BUILT_IN_SIZE_NAMES, BUILT_IN_SIZES
from reconciler.config.tree import Mapping, Scalar
from reconciler.model.errors import Problem


def check_kinds(document: Document) -> Iterator[Problem]:
    """Yield `sector/kind`: sectors without a kind, with an unknown one, or mixed kinds."""
    own_sizes = document.own_sizes()
    known = [*BUILT_IN_KINDS, *sorted(filter(None, (s.text("kind") for s in own_sizes.values())))]
    for name, sector in document.sectors():
        kind, node = sector.text("kind"), sector.get("kind")
        if kind is not None and kind in known:
            for fleet in document.fleets_of(name, sector):
                yield from _check_fleet_kind(document, fleet, kind, own_sizes)
        elif kind is not None:
            message = f"unknown kind {quoted(kind)}; known: {listed(known)}"
            yield document.problem(SECTOR_KIND, ("sectors", name, "kind"), message)
        elif node is None or isinstance(node, Scalar):
            message = f"sector {quoted(name)} has no kind (memory, cpu or that of an own size)"
            yield document.problem(SECTOR_KIND, ("sectors", name), message)


def _check_fleet_kind(
    document: Document, fleet: FleetNode, kind: str, own_sizes: dict[str, Mapping]
) -> Iterator[Problem]:
    """Check that the fleet's size is of the sector's kind."""
    size = fleet.entry.text("size")
    if size is None:
        return
    if size in own_sizes:
        own_kind = own_sizes[size].text("kind")
        wrong = own_kind is not None and own_kind != kind
        shown = f"of kind {quoted(own_kind or '')}"
        hint = "; a size without `kind` may be in sectors of any kind"
    else:
        wrong = size in BUILT_IN_SIZE_NAMES and (kind, size) not in BUILT_IN_SIZES
        shown = "for memory and cpu only"
        hint = ""
    if wrong:
        message = f"size {quoted(size)} is {shown}, its sector of kind {quoted(kind)}{hint}"
        yield document.problem(SECTOR_KIND, (*fleet.location, "size"), message)


def check_sizes(document: Document) -> Iterator[Problem]:
    """Yield `sector/unknown-size`, and own sizes with a built-in name."""
    own_sizes = document.own_sizes()
    for name in own_sizes:
        if name in BUILT_IN_SIZE_NAMES:
            message = f"{quoted(name)} is a built-in size; give the own size another name"
            yield document.problem(RANGE, ("sizes", name), message)
    known = [*BUILT_IN_SIZE_NAMES, *own_sizes]
    for fleet in document.fleets():
        size = fleet.entry.text("size")
        if size is not None and size not in known:
            message = f"unknown size {quoted(size)}; known: {listed(known)}"
            yield document.problem(UNKNOWN_SIZE, (*fleet.location, "size"), message)


def check_duplicates(document: Document) -> Iterator[Problem]:
    """Yield `sector/duplicate-fleet`: names are unique, and no two fleets make the same nodes."""
    names: dict[str, FleetNode] = {}
    served: dict[_Served, FleetNode] = {}
    for fleet in document.fleets():
        size, name = fleet.entry.text("size"), fleet.name
        if size is None or name is None:
            continue
        first = names.get(name) or next((served[k] for k in _overlaps(fleet) if k in served), None)
        if first is not None:
            message = _duplicate(document, fleet, first)
            yield document.problem(DUPLICATE_FLEET, fleet.location, message)
        names.setdefault(name, fleet)
        zone = fleet.entry.text("zone")
        for covered in {zone, _SOME_ZONE}:
            served.setdefault(_served(fleet, covered, stated=fleet.states_lifecycle), fleet)


_Served: TypeAlias = tuple[str, str, str | None, str, bool]
"""Sector, size, zone (None: all), lifecycle, and whether `lifecycle` is stated."""
_SOME_ZONE: Final = ""


def _served(
    fleet: FleetNode, zone: str | None, *, stated: bool, lifecycle: str | None = None
) -> _Served:
    size = fleet.entry.text("size") or ""
    return fleet.sector_name, size, zone, lifecycle or fleet.lifecycle, stated


def _overlaps(fleet: FleetNode) -> Iterator[_Served]:
    """Yield keys of fleets with the same nodes: in the same zone and of the same lifecycle.

    Spot and on-demand are distinguished by `lifecycle` alone; of two fleets one has to state it.
    """
    zone = fleet.entry.text("zone")
    for covered in (zone, None) if zone is not None else (_SOME_ZONE,):
        for stated in (False, True):
            yield _served(fleet, covered, stated=stated)
        if not fleet.states_lifecycle:
            other = "on-demand" if fleet.lifecycle == "spot" else "spot"
            yield _served(fleet, covered, stated=False, lifecycle=other)


def _duplicate(document: Document, fleet: FleetNode, first: FleetNode) -> str:
    line = document.place(first.location).line
    message = f"fleet {quoted(fleet.name or '')} is already there, on line {line}"
    if first.name != fleet.name:
        message = (
            f"fleet {quoted(fleet.name or '')} is for the same nodes as"
            f" {quoted(first.name or '')} on line {line}"
        )
    if fleet.lifecycle != first.lifecycle and not fleet.states_lifecycle:
        message += (
            f": one is spot, the other on-demand; give the one on line"
            f" {document.place(fleet.location).line} `lifecycle: {fleet.lifecycle}`, which becomes"
            " part of its name"
        )
    elif _size(fleet) == _size(first):
        zone = "" if fleet.entry.text("zone") else "a `zone`, which becomes part of its name, or "
        message += f": give each {zone}a size of its own"
    return message


def _size(fleet: FleetNode) -> tuple[str, str | None]:
    return fleet.sector_name, fleet.entry.text("size")


def check_default_sector(document: Document) -> Iterator[Problem]:
    """Yield `default-sector/unknown`: pods without a sector would have no fleet."""
    default = document.root.text("default_sector")
    known = document.root.mapping("sectors").entries
    if default and default not in known:
        message = f"default_sector {quoted(default)} names no sector"
        hint = f"; there are: {listed(known)}" if known else ""
        yield document.problem(DEFAULT_SECTOR, ("default_sector",), message + hint)
