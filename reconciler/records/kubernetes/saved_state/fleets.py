"""What is saved of each fleet, as part of the annotation `fleet-state`."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import Annotated, get_args

from msgspec import Meta, Struct, field
from msgspec.json import Encoder
from msgspec.structs import replace as structs_replace

from reconciler.model.cluster import Taint, TaintEffect
from reconciler.model.frozen import NO_LABELS, FrozenMap, Labels
from reconciler.model.ids import Region, ResourceName
from reconciler.model.saved_state import NODE_FACTS_MAX, FailureKind, SavedFleetState
from reconciler.model.text import replace_surrogates
from reconciler.records.kubernetes.fields import utc

FLEETS_MAX = 300
"""How many are written at most."""
FLEETS_BYTES_MAX = 160 * 1024
"""How many bytes they take at most: the API server accepts 256 KiB of annotations per object."""
SHORT = 24
"""How many characters of each text are kept when they would take more."""
RESOURCES_MAX = 8
"""How many resource names are read of one fleet at most."""
NODE_FACTS_TOTAL_MAX = 24 * 1024
"""How many characters of them are written at most, of all groups together."""
_AROUND_WORD = 12
"""Quotes, separators and the names of a taint's fields."""
_AROUND_FACTS = 150
"""The names of the fields, the launch template's digest and the time."""
_ENCODER = Encoder()
Count = Annotated[int, Meta(ge=0, lt=2**31)]
Amount = Annotated[int, Meta(ge=0, le=2**63 - 1)]
"""The amount of a resource that a node may state: as much as a Kubernetes quantity can hold."""


class TaintWire(Struct, gc=False, omit_defaults=True):
    """A taint that the nodes of a group have in common."""

    key: str
    effect: TaintEffect
    value: str = ""


class SavedFleetWire(Struct, gc=False, omit_defaults=True):
    """One fleet; a field that it does not have, of a newer version, is left out."""

    fleet: str
    region: str
    unavailable_until: datetime | None = None
    failures: Count = 0
    last_error_at: datetime | None = None
    reason: str = ""
    failure: str = "capacity"
    below_target_since: datetime | None = None
    silent_since: datetime | None = None
    stuck_in_a_row: Count = 0
    stuck_because: str = ""
    last_stuck_launched_at: datetime | None = None
    learned: dict[ResourceName, Amount] = field(default_factory=dict)
    learned_version: str = ""
    unseen_since: datetime | None = None
    node_labels: dict[str, str] = field(default_factory=dict)
    node_taints: tuple[TaintWire, ...] = ()
    node_template: str = ""
    nodes_gone_since: datetime | None = None
    halted_version: str = ""
    halted_because: str = ""
    resumed_version: str = ""
    canary_version: str = ""
    canary_since: datetime | None = None
    canary_seen_at: datetime | None = None
    canary_proven: bool = False
    spot_return_at: datetime | None = None


def decode_fleet(each: SavedFleetWire) -> SavedFleetState:
    """Read one fleet."""
    return SavedFleetState(
        fleet=each.fleet,
        region=Region(each.region),
        unavailable_until=utc(each.unavailable_until),
        failures=each.failures,
        last_error_at=utc(each.last_error_at),
        reason=replace_surrogates(each.reason),
        failure=_failure(each.failure),
        below_target_since=utc(each.below_target_since),
        silent_since=utc(each.silent_since),
        stuck_in_a_row=each.stuck_in_a_row,
        stuck_because=replace_surrogates(each.stuck_because),
        last_stuck_launched_at=utc(each.last_stuck_launched_at),
        learned=FrozenMap(islice(sorted(each.learned.items()), RESOURCES_MAX)),
        learned_version=replace_surrogates(each.learned_version),
        unseen_since=utc(each.unseen_since),
        node_labels=Labels(islice(sorted(each.node_labels.items()), NODE_FACTS_MAX)),
        node_taints=tuple(
            Taint(key=t.key, value=t.value, effect=t.effect)
            for t in each.node_taints[:NODE_FACTS_MAX]
        ),
        node_template=replace_surrogates(each.node_template),
        nodes_gone_since=utc(each.nodes_gone_since),
        halted_version=replace_surrogates(each.halted_version),
        halted_because=replace_surrogates(each.halted_because),
        resumed_version=replace_surrogates(each.resumed_version),
        canary_version=replace_surrogates(each.canary_version),
        canary_since=utc(each.canary_since),
        canary_seen_at=utc(each.canary_seen_at),
        canary_proven=each.canary_proven,
        spot_return_at=utc(each.spot_return_at),
    )


def _failure(text: str) -> FailureKind:
    """Return the kind of a failure; one of a newer version counts as a lack of capacity."""
    known: tuple[FailureKind, ...] = get_args(FailureKind)
    return next((kind for kind in known if kind == text), "capacity")


def encode_fleets(fleet_states: Iterable[SavedFleetState]) -> tuple[SavedFleetWire, ...]:
    """Write the fleets in order of name and Region, without those in their default state.

    If there are too many, those are kept whose rolling update was halted or resumed, or whose nodes
    were moved back to spot, and the latest cool-offs.
    """
    fleets = [m for m in fleet_states if m != SavedFleetState(fleet=m.fleet, region=m.region)]
    fleets.sort(key=_weight_of_fleet, reverse=True)
    order = {
        (saved_fleet_state.fleet, str(saved_fleet_state.region)): at
        for at, saved_fleet_state in enumerate(fleets)
    }
    kept = _with_node_facts_bounded(fleets[:FLEETS_MAX])
    wires = list(map(_fleet_wire, kept))
    if sum(map(_size, wires)) > FLEETS_BYTES_MAX:
        wires = _shortened(sorted(wires, key=lambda w: order[w.fleet, w.region]))
    return tuple(sorted(wires, key=lambda w: (w.fleet, w.region)))


def _shortened(wires: Iterable[SavedFleetWire]) -> list[SavedFleetWire]:
    """Return the fleets with their texts cut, the first ones as far as all together are not long.

    An incident may make all fleets fail with the longest of texts.
    """
    saved_fleet_wires: list[SavedFleetWire] = []
    left = FLEETS_BYTES_MAX
    for wire in wires:
        cut = structs_replace(
            wire,
            reason=wire.reason[:SHORT],
            stuck_because=wire.stuck_because[:SHORT],
            halted_because=wire.halted_because[:SHORT],
        )
        left -= _size(cut)
        if left < 0:
            break
        saved_fleet_wires.append(cut)
    return saved_fleet_wires


def _size(wire: SavedFleetWire) -> int:
    """Return how many bytes it takes in the annotation."""
    return len(_ENCODER.encode(wire)) + 1


def _with_node_facts_bounded(fleets: Iterable[SavedFleetState]) -> Iterator[SavedFleetState]:
    """Yield the fleets, without labels and taints of nodes once they are too much in total.

    Nodes that are there show theirs again: those of nodes that are gone come first.
    """
    left = NODE_FACTS_TOTAL_MAX
    for fleet in sorted(fleets, key=lambda saved: saved.nodes_gone_since is None):
        words = [
            *fleet.node_labels.items(),
            *((t.key, t.value, t.effect) for t in fleet.node_taints),
        ]
        size = sum(len(word) + _AROUND_WORD for parts in words for word in parts)
        size += _AROUND_FACTS if words else 0
        if size <= left:
            left -= size
            yield fleet
        else:
            yield replace(
                fleet,
                node_labels=NO_LABELS,
                node_taints=(),
                node_template="",
                nodes_gone_since=None,
            )


def _weight_of_fleet(saved: SavedFleetState) -> tuple[bool, float, int, str, str]:
    # What EC2 and the nodes show again is less important than what nothing else shows.
    decided = bool(saved.halted_version or saved.resumed_version or saved.spot_return_at)
    until = saved.unavailable_until or saved.below_target_since or saved.silent_since
    latest = until.timestamp() if until else 0.0
    return decided, latest, saved.stuck_in_a_row, saved.fleet, saved.region


def _fleet_wire(each: SavedFleetState) -> SavedFleetWire:
    return SavedFleetWire(
        fleet=each.fleet,
        region=each.region,
        unavailable_until=each.unavailable_until,
        failures=each.failures,
        last_error_at=each.last_error_at,
        reason=each.reason,
        failure=each.failure,
        below_target_since=each.below_target_since,
        silent_since=each.silent_since,
        stuck_in_a_row=each.stuck_in_a_row,
        stuck_because=each.stuck_because,
        last_stuck_launched_at=each.last_stuck_launched_at,
        learned=dict(each.learned),
        learned_version=each.learned_version,
        unseen_since=each.unseen_since,
        node_labels=dict(each.node_labels),
        node_taints=tuple(TaintWire(t.key, t.effect, t.value) for t in each.node_taints),
        node_template=each.node_template,
        nodes_gone_since=each.nodes_gone_since,
        halted_version=each.halted_version,
        halted_because=each.halted_because,
        resumed_version=each.resumed_version,
        canary_version=each.canary_version,
        canary_since=each.canary_since,
        canary_seen_at=each.canary_seen_at,
        canary_proven=each.canary_proven,
        spot_return_at=each.spot_return_at,
    )
