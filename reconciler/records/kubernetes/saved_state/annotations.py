"""The state that is saved in annotations of our Lease, so that it survives a restart."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from msgspec import UNSET, Raw, Struct, UnsetType, field
from msgspec.json import Decoder, Encoder

from reconciler.model.actions import (
    BOUND_TO,
    FLEET_STATE,
    LAST_DESCHEDULED,
    LAST_DRAIN,
    RESUME_UPDATE,
)
from reconciler.model.binding import KeptProof
from reconciler.model.ids import FleetId, InstanceId, Region
from reconciler.model.saved_state import (
    InterruptedPool,
    LostFleet,
    ProtectedInstance,
    SavedDemandState,
    SavedFleetState,
    SavedRaise,
    StuckEnd,
)
from reconciler.records.kubernetes.fields import (
    MetadataWire,
    Wire,
    required_name,
    utc,
)
from reconciler.records.kubernetes.saved_state.binding_proof import decode_proof
from reconciler.records.kubernetes.saved_state.fleets import (
    Amount,
    Count,
    SavedFleetWire,
    decode_fleet,
    encode_fleets,
)
from reconciler.records.kubernetes.saved_state.interrupted_pools import (
    PoolWire,
    decode_pools,
    encode_pools,
)
from reconciler.records.kubernetes.saved_state.protected_instances import (
    ProtectedWire,
    decode_protected,
    encode_protected,
)

LEASE_NAME = "fleet-reconciler"
LEASE_NAMESPACE = "fleet-reconciler"
"""Where the manifest puts the install, and so its Lease, by default."""

VERSION = 1
"""Version of the format of `fleet-state`; a value of another version is not read."""
DEMANDS_MAX = 100
LOST_FLEETS_MAX = 100
STUCK_ENDS_MAX = 200
RAISES_MAX = 20
"""How many of each are written at most, 254 KiB in total with `FLEETS_BYTES_MAX`: the API server
accepts 256 KiB of annotations per object. The latest are kept."""
TEXT_MAX = 1 << 18
"""Longer values are not read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedState:
    """The content of the Lease's annotations."""

    last_drain_at: datetime | None = None
    last_descheduled_at: datetime | None = None
    fleets: tuple[SavedFleetState, ...] = ()
    demands: tuple[SavedDemandState, ...] = ()
    lost_fleets: tuple[LostFleet, ...] = ()
    stuck_ends: tuple[StuckEnd, ...] = ()
    proof: KeptProof | None = None
    raises: tuple[SavedRaise, ...] = ()
    resumed_updates: tuple[str, ...] = ()
    """Names of fleets, as a person has written them."""
    interrupted_pools: tuple[InterruptedPool, ...] = ()
    protected_instances: tuple[ProtectedInstance, ...] = ()
    namespace: str = ""
    """Namespace of the Lease."""
    written: bool = False
    """Whether the state of fleets exists, even if it is empty."""
    unreadable: bool = False
    """At least one annotation could not be read and was taken as absent."""


class _AnnotationsWire(Struct, gc=False):
    last_drain: str | None = field(name=LAST_DRAIN, default=None)
    last_descheduled: str | None = field(name=LAST_DESCHEDULED, default=None)
    fleet_state: str | None = field(name=FLEET_STATE, default=None)
    bound_to: str | None = field(name=BOUND_TO, default=None)
    resume_update: str | None = field(name=RESUME_UPDATE, default=None)


class _LeaseMetadataWire(MetadataWire):
    annotations: _AnnotationsWire | None = None


class _LeaseWire(Wire):
    metadata: _LeaseMetadataWire


class _DemandWire(Struct, gc=False, omit_defaults=True):
    demand: str
    fleet: str
    region: str
    bought_at: datetime
    version: str
    strikes: Count = 0
    judged_at: datetime | None = None
    gone_at: datetime | None = None


class _LostFleetWire(Struct, gc=False):
    id: str
    region: str
    since: datetime


class _StuckEndWire(Struct, gc=False):
    instance: str
    at: datetime


class _RaiseWire(Struct, gc=False, omit_defaults=True):
    at: datetime
    nodes: Count
    nano_usd_per_hour: Amount
    nodes_before: Count = 0
    nano_usd_before: Amount = 0


class _FleetStateWire(Struct, gc=False):
    fleets: tuple[SavedFleetWire, ...] = ()
    demands: tuple[_DemandWire, ...] = ()
    lost_fleets: tuple[_LostFleetWire, ...] = ()
    stuck_ends: tuple[_StuckEndWire, ...] = ()
    raises: tuple[_RaiseWire, ...] | UnsetType = UNSET
    interrupted_pools: tuple[PoolWire, ...] | UnsetType = UNSET
    protected_instances: tuple[ProtectedWire, ...] | UnsetType = UNSET
    version: int = VERSION


_LEASE = Decoder(_LeaseWire)
_FLEET_STATE = Decoder(_FleetStateWire)
_MOMENT = Decoder(datetime)
_ENCODER = Encoder(order="sorted")


def decode_lease(raw: bytes | Raw) -> SavedState | None:
    """Decode a Lease: None when it is not ours; ValueError when it cannot be read at all.

    An annotation that cannot be read is taken as absent: a person may have edited it, and a lost
    cool-off costs less than a loop that cannot run.
    """
    metadata = _LEASE.decode(raw).metadata
    if required_name(metadata.name) != LEASE_NAME:
        return None
    wire = metadata.annotations or _AnnotationsWire()
    stated = (wire.last_drain, wire.last_descheduled)
    last_drain_at, last_descheduled_at = moments = [_stated_moment(text) for text in stated]
    unreadable = any(text and at is None for text, at in zip(stated, moments, strict=True))
    saved = SavedState()
    try:
        if wire.fleet_state:
            saved = decode_fleet_state(wire.fleet_state)
    except (ValueError, OverflowError, RecursionError):
        unreadable = True
    proof: KeptProof | None = None
    try:
        if wire.bound_to:
            proof = decode_proof(wire.bound_to)
    except (ValueError, OverflowError, RecursionError):
        unreadable = True
    written = bool(wire.fleet_state)
    return replace(
        saved,
        proof=proof,
        last_drain_at=last_drain_at,
        resumed_updates=_names(wire.resume_update),
        last_descheduled_at=last_descheduled_at,
        namespace=metadata.namespace or "",
        written=written,
        unreadable=unreadable,
    )


def _names(text: str | None) -> tuple[str, ...]:
    """Return the names of a comma-separated list; an absurdly long list counts as empty."""
    if not text or len(text) > TEXT_MAX:
        return ()
    return tuple(sorted({name.strip() for name in text.split(",")}))


def _stated_moment(text: str | None) -> datetime | None:
    """Return the time in an annotation; None without one, or when it cannot be read."""
    try:
        return utc(_MOMENT.decode(_ENCODER.encode(text))) if text else None
    except (ValueError, OverflowError):
        return None


def decode_fleet_state(text: str) -> SavedState:
    """Read the annotation `fleet-state`.

    Raises:
        ValueError: It cannot be read, is of another version, or is absurdly long.
    """
    if len(text) > TEXT_MAX:
        raise ValueError(f"{len(text)} characters are not a state that this program wrote")
    state = _FLEET_STATE.decode(text)
    if state.version != VERSION:
        raise ValueError(f"version {state.version} of the state is not known")
    return SavedState(
        fleets=tuple(map(decode_fleet, state.fleets)),
        demands=tuple(map(_demand, state.demands)),
        lost_fleets=tuple(
            LostFleet(id=FleetId(e.id), region=Region(e.region), since=_moment(e.since))
            for e in state.lost_fleets
        ),
        stuck_ends=tuple(
            StuckEnd(instance=InstanceId(e.instance), at=_moment(e.at))
            for e in state.stuck_ends[:STUCK_ENDS_MAX]
        ),
        raises=() if state.raises is UNSET else tuple(map(_raise, state.raises[:RAISES_MAX])),
        interrupted_pools=decode_pools(state.interrupted_pools or ()),
        protected_instances=decode_protected(state.protected_instances or ()),
    )


def _demand(each: _DemandWire) -> SavedDemandState:
    return SavedDemandState(
        demand=each.demand,
        fleet=each.fleet,
        region=Region(each.region),
        bought_at=_moment(each.bought_at),
        version=each.version,
        strikes=each.strikes,
        judged_at=utc(each.judged_at),
        gone_at=utc(each.gone_at),
    )


def _raise(each: _RaiseWire) -> SavedRaise:
    return SavedRaise(
        at=_moment(each.at),
        nodes=each.nodes,
        nano_usd_per_hour=each.nano_usd_per_hour,
        nodes_before=each.nodes_before,
        nano_usd_before=each.nano_usd_before,
    )


def _moment(moment: datetime) -> datetime:
    return utc(moment) or moment


def encode_fleet_state(
    fleet_states: Iterable[SavedFleetState],
    demands: Iterable[SavedDemandState] = (),
    lost_fleets: Iterable[LostFleet] = (),
    stuck_ends: Iterable[StuckEnd] = (),
    raises: Iterable[SavedRaise] = (),
    interrupted_pools: Iterable[InterruptedPool] = (),
    protected_instances: Iterable[ProtectedInstance] = (),
) -> str:
    """Write the annotation `fleet-state`: sorted, bounded, without fleets in their default state.

    If there is too much, what matters longest is kept: the fleets whose rolling update was halted
    or resumed, or whose nodes were moved back to spot, and the latest cool-offs; the kinds of pods
    that have failed most often; the fleets that have been lost longest.
    """
    wanted = sorted(demands, key=lambda d: (-d.strikes, -d.bought_at.timestamp(), d.demand))
    lost = sorted(lost_fleets, key=lambda each: (each.since, each.region, each.id))
    latest = sorted(raises, key=lambda each: each.at)[-RAISES_MAX:]
    state = _FleetStateWire(
        fleets=encode_fleets(fleet_states),
        demands=tuple(
            sorted(
                map(_demand_wire, wanted[:DEMANDS_MAX]), key=lambda w: (w.demand, w.fleet, w.region)
            )
        ),
        lost_fleets=tuple(
            _LostFleetWire(id=lost_fleet.id, region=lost_fleet.region, since=lost_fleet.since)
            for lost_fleet in lost[:LOST_FLEETS_MAX]
        ),
        stuck_ends=tuple(
            _StuckEndWire(instance=stuck_end.instance, at=stuck_end.at)
            for stuck_end in sorted(stuck_ends)[-STUCK_ENDS_MAX:]
        ),
        raises=tuple(map(_raise_wire, latest)) or UNSET,
        interrupted_pools=encode_pools(interrupted_pools) or UNSET,
        protected_instances=encode_protected(protected_instances) or UNSET,
    )
    return _ENCODER.encode(state).decode()


def _raise_wire(each: SavedRaise) -> _RaiseWire:
    return _RaiseWire(
        at=each.at,
        nodes=each.nodes,
        nano_usd_per_hour=each.nano_usd_per_hour,
        nodes_before=each.nodes_before,
        nano_usd_before=each.nano_usd_before,
    )


def _demand_wire(each: SavedDemandState) -> _DemandWire:
    return _DemandWire(
        demand=each.demand,
        fleet=each.fleet,
        region=each.region,
        bought_at=each.bought_at,
        version=each.version,
        strikes=each.strikes,
        judged_at=each.judged_at,
        gone_at=each.gone_at,
    )
