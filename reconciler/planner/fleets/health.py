"""Whether a fleet can be asked for more now, and what of its failures is remembered.

A fleet is unavailable for a cool-off after failed launches and after instances in a row that
never became usable nodes; as long as EC2 holds less than its target and launches nothing; and
while its region does not answer (docs/failures.md).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from reconciler.model.fleet import Fleet, Instance
from reconciler.model.ids import FleetKey, NodeName, Region
from reconciler.model.saved_state import SavedFleetState
from reconciler.model.snapshot import CloudState, Snapshot
from reconciler.model.text import cut, duration
from reconciler.model.unplaceable import UnavailableKind
from reconciler.planner.clocks import SKEW_MAX
from reconciler.planner.cool_off import COOL_OFF, COOL_OFF_MAX, cool_off, failures_in
from reconciler.planner.fleets.instances.stuck import (
    IN_A_ROW,
    StuckInstance,
    with_stuck,
)
from reconciler.planner.fleets.launch_errors import last_failure, names_quota
from reconciler.planner.fleets.live_fleet import LIVE_STATES, fleet_keys_by_instance
from reconciler.planner.nodes.starting import takes_pods
from reconciler.planner.settings import PlannerSettings

MISSING = "missing"
SILENT = "unknown"
"""Stands for EC2's state of the fleet if its region does not answer."""
FORGOTTEN_AFTER = timedelta(hours=1)
"""After this long a failure no longer lengthens the next cool-off, and older errors are not
counted."""
REASON_MAX = 160
"""How many characters are saved of what AWS says: the Lease has room for no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthSignals:
    """What one snapshot shows about one fleet, other than its nodes."""

    live: Fleet | None = None
    failed: Sequence[StuckInstance] = ()
    """Its instances that never became usable nodes, those that ended by themselves included."""
    provided: int = 0
    """The highest number that EC2's figures, its instances or the nodes show."""
    unjoined: int = 0
    """Those of them that are no nodes yet and are not stuck: EC2 has launched them."""
    launched_at: datetime | None = None
    """The latest launch of an instance that still exists."""
    joined_at: datetime | None = None
    """The latest launch of an instance whose node takes pods."""
    silent: bool = False


def read_signs(
    snapshot: Snapshot,
    settings: PlannerSettings,
    live: Mapping[FleetKey, Fleet],
    failed: Sequence[StuckInstance],
    joined: Mapping[FleetKey, Collection[NodeName]],
) -> dict[FleetKey, HealthSignals]:
    """Return the signs of every fleet of the config; none if EC2 was not asked at all.

    Args:
        snapshot: What was observed.
        settings: The sector config, resolved.
        live: Fleets that EC2 has.
        failed: Instances that never became usable nodes, if they are to be counted.
        joined: Nodes that count as joined.
    """
    cloud = snapshot.cloud
    if cloud is None:
        return {}
    members = _members(cloud, settings)
    taking = {node.instance_id for node in snapshot.cluster.nodes if takes_pods(node, settings)}
    failed_of: dict[FleetKey, list[StuckInstance]] = {}
    for stuck_instance in failed:
        failed_of.setdefault(stuck_instance.key, []).append(stuck_instance)
    found: dict[FleetKey, HealthSignals] = {}
    for fleet in settings.fleets():
        for key in fleet.fleet_keys():
            own, known = members.get(key, []), live.get(key)
            counting = [i for i in own if i.counts]
            there = max(len(counting), len(joined.get(key, ())))
            figure = int(known.fulfilled_capacity) if known and not known.counts_units else 0
            # EC2's figure may still count instances that it shows as ended.
            launched = max(there, figure - sum(i.ends for i in own) if figure > there else 0)
            of_key = failed_of.get(key, ())
            dead = sum(each.instance.counts for each in of_key)
            found[key] = HealthSignals(
                live=known,
                failed=of_key,
                provided=max(there, figure),
                unjoined=max(0, launched - len(joined.get(key, ())) - dead),
                launched_at=_latest(counting),
                joined_at=_latest(i for i in own if i.id in taking),
                silent=cloud.is_silent(fleet.provider, key.region),
            )
    return found


def _members(cloud: CloudState, settings: PlannerSettings) -> dict[FleetKey, list[Instance]]:
    keys = fleet_keys_by_instance(cloud, settings)
    found: dict[FleetKey, list[Instance]] = {}
    for instance in cloud.instances:
        if instance.id in keys:
            found.setdefault(keys[instance.id], []).append(instance)
    return found


def _latest(instances: Iterable[Instance]) -> datetime | None:
    return max((i.launched_at for i in instances if i.launched_at is not None), default=None)


def saved_states_after(
    snapshot: Snapshot, signs: Mapping[FleetKey, HealthSignals], settings: PlannerSettings
) -> dict[tuple[str, Region], SavedFleetState]:
    """Return every fleet's saved state after this snapshot, by name and region.

    The result is the same if it is computed twice from the same signs: if the Lease was written but
    is still seen as it was, nothing is counted twice.
    """
    stable = timedelta(seconds=settings.spot_return.stable_seconds if settings.spot_return else 0)
    known = (_not_ahead(m, snapshot.at) for m in snapshot.cluster.fleet_states)
    saved_states = {
        (saved_fleet_state.fleet, saved_fleet_state.region): saved_fleet_state
        for saved_fleet_state in known
    }
    for key, sign in signs.items():
        place = (key.name, key.region)
        before = saved_states.get(place) or SavedFleetState(fleet=key.name, region=key.region)
        after = _with_silence(before, sign, snapshot.at)
        if not sign.silent:
            after = _with_errors(after, sign, snapshot.at)
            after = _with_shortfall(after, sign, snapshot.at)
            after = with_stuck(after, sign.failed, sign.joined_at, snapshot.at)
            after = _forgotten(after, stable, snapshot.at)
        if after != before:
            saved_states[place] = after
    ours = {(key.name, key.region) for key in signs}
    if ours:
        gone = [p for p, m in saved_states.items() if p not in ours and _is_old(m, snapshot.at)]
        for place in gone:
            del saved_states[place]
    return saved_states


def _not_ahead(saved: SavedFleetState, at: datetime) -> SavedFleetState:
    """Return the saved state with times in the future, noted by a clock ahead of ours, set to now.

    Otherwise a fleet would stay closed, or no new error be counted, until our clock has caught up.
    """
    ends, error, silent = saved.unavailable_until, saved.last_error_at, saved.silent_since
    unseen = saved.unseen_since
    return replace(
        saved,
        unavailable_until=None if ends is None else min(ends, at + COOL_OFF_MAX),
        last_error_at=None if error is None else min(error, at),
        silent_since=None if silent is None else min(silent, at),
        unseen_since=None if unseen is None else min(unseen, at),
    )


def _is_old(saved: SavedFleetState, at: datetime) -> bool:
    """Return whether nothing remembered about the fleet is from the last hour."""
    moments = (
        saved.unavailable_until,
        saved.last_error_at,
        saved.below_target_since,
        saved.silent_since,
        saved.last_stuck_launched_at,
    )
    return all(m is None or at - m > FORGOTTEN_AFTER for m in moments)


def refused(saved: SavedFleetState, reason: str, at: datetime) -> SavedFleetState:
    """Return the saved state of a fleet that EC2 refused at once, for want of capacity or a quota.

    No history will show it.
    """
    failures = saved.failures + 1
    until = at + cool_off(failures)
    return replace(
        saved,
        failures=failures,
        last_error_at=at,
        reason=cut(reason, REASON_MAX),
        failure="quota" if names_quota(reason) else "capacity",
        unavailable_until=max(until, saved.unavailable_until or until),
    )


def denied(saved: SavedFleetState, reason: str, at: datetime) -> SavedFleetState:
    """Return the saved state of a fleet that EC2 does not raise, for a reason other than capacity.

    It is asked again after the shortest cool-off, so that it serves again soon after the right is
    granted, or whatever prevented it is gone.
    """
    until = at + COOL_OFF
    return replace(saved, reason=cut(reason, REASON_MAX), failure="denied", unavailable_until=until)


def _with_silence(saved: SavedFleetState, sign: HealthSignals, at: datetime) -> SavedFleetState:
    since = (saved.silent_since or at) if sign.silent else None
    return replace(saved, silent_since=since)


def _with_errors(saved: SavedFleetState, sign: HealthSignals, at: datetime) -> SavedFleetState:
    """Count errors that were not counted before; a fleet that launches again has recovered."""
    live, counted = sign.live, saved.last_error_at
    if live is None:
        return saved
    # EC2's clock may be ahead of ours: its errors of the last seconds count as of now.
    errors = [
        replace(error, at=min(error.at, at))
        for error in live.launch_errors
        if at - FORGOTTEN_AFTER < error.at <= at + SKEW_MAX
    ]
    new = [error for error in errors if counted is None or error.at > counted]
    if not new:
        return _recovered(saved, sign)
    known = counted is not None and saved.failures > 0
    times = [counted, *(e.at for e in new)] if counted and known else [e.at for e in new]
    failures = saved.failures + failures_in(times) - int(known)
    last = max(error.at for error in new)
    until = last + cool_off(failures)
    failure, words = last_failure(errors)
    return replace(
        saved,
        failures=failures,
        last_error_at=last,
        reason=cut(words, REASON_MAX),
        failure=failure,
        unavailable_until=max(until, saved.unavailable_until or until),
    )


def _recovered(saved: SavedFleetState, sign: HealthSignals) -> SavedFleetState:
    """Forget failures once all instances exist and one was launched after the last error."""
    error, launched = saved.last_error_at, sign.launched_at
    if error is None or launched is None or sign.live is None or launched <= error:
        return saved
    if sign.provided < sign.live.target_capacity:
        return saved
    return replace(saved, failures=0)


def _with_shortfall(saved: SavedFleetState, sign: HealthSignals, at: datetime) -> SavedFleetState:
    """Note since when EC2 has provided less than the target.

    The fleet's history shows whether that began earlier, unless it was known, and complete, before.
    """
    live = sign.live
    measured = live is not None and live.state in LIVE_STATES and not live.counts_units
    if live is None or not measured or sign.provided >= live.target_capacity:
        return replace(saved, below_target_since=None)
    first_sight = saved == SavedFleetState(fleet=saved.fleet, region=saved.region)
    since = saved.below_target_since or (live.changed_at if first_sight else None) or at
    return replace(saved, below_target_since=min(since, at))


def _forgotten(saved: SavedFleetState, stable: timedelta, at: datetime) -> SavedFleetState:
    """Forget failures of long ago; the time of the last error stays while EC2 may show it.

    Nor is that time forgotten before spot capacity counts as stable.
    """
    moments = [m for m in (saved.unavailable_until, saved.last_error_at) if m is not None]
    if not moments or at - max(moments) <= FORGOTTEN_AFTER:
        return saved
    error = saved.last_error_at
    kept = error if error is not None and at - error <= stable else None
    return replace(
        saved,
        failures=0,
        unavailable_until=None,
        last_error_at=kept,
        reason="",
        failure="capacity",
    )


def unavailable(
    state: str,
    sign: HealthSignals | None,
    saved: SavedFleetState | None,
    at: datetime,
    init_seconds: float,
) -> tuple[UnavailableKind, str]:
    """Return why the fleet cannot serve new demand now, as a kind and in words; empty if it can.

    Args:
        state: EC2's state of the fleet, or ours if EC2 has none.
        sign: What the snapshot shows about it; None if EC2 was not asked.
        saved: What is known about it, including this snapshot.
        at: The time of the plan.
        init_seconds: `instance_init_time`.
    """
    if state == SILENT:
        return "silent", "EC2 does not answer in its region"
    if state not in LIVE_STATES:
        return ("missing" if state == MISSING else "state"), f"the fleet is {state}"
    if saved is not None and saved.unavailable_until is not None and saved.unavailable_until > at:
        kind, what = why_cooling(saved)
        return kind, f"{what}; cooling off until {saved.unavailable_until:%H:%M:%S}"
    if sign is None or sign.live is None:
        return "", ""
    if sign.live.launches_halted:
        return "halted", sign.live.launches_halted
    short = "EC2 reports the fleet's activity status as error"
    if sign.live.activity_status != "error":
        short = _shortfall(sign, sign.live, saved, at, init_seconds)
    return _why_short(saved, short) if short else ("", "")


def launched_to_join(state: str, sign: HealthSignals | None, saved: SavedFleetState | None) -> int:
    """Return how many launched instances may still become nodes, whatever the fleet lacks.

    0 for a fleet whose last instances in a row never did: the next ones are made in the same way.

    Args:
        state: As for `unavailable`.
        sign: As for `unavailable`.
        saved: As for `unavailable`.
    """
    if sign is None or state not in LIVE_STATES:
        return 0
    return 0 if saved and saved.stuck_in_a_row >= IN_A_ROW else sign.unjoined


def why_cooling(saved: SavedFleetState) -> tuple[UnavailableKind, str]:
    """Return what the cool-off of a fleet that has one is for, as a kind and in words."""
    if saved.stuck_in_a_row >= IN_A_ROW:
        text = f"{saved.stuck_in_a_row} instances in a row never became usable nodes"
        last = f", the last: {saved.stuck_because}" if saved.stuck_because else ""
        return "never-joined", text + last
    if saved.failure == "denied":
        return "denied", saved.reason or "EC2 refuses to raise its target"
    return saved.failure, saved.reason or "capacity errors"


def _why_short(saved: SavedFleetState | None, short: str) -> tuple[UnavailableKind, str]:
    """Return why a fleet lacks instances, with what its last launches failed for where known."""
    if saved is None or not saved.failures or saved.failure not in {"quota", "launch-fails"}:
        return "capacity", short
    return saved.failure, f"{short}: {saved.reason}"


def _shortfall(
    sign: HealthSignals,
    live: Fleet,
    saved: SavedFleetState | None,
    at: datetime,
    init_seconds: float,
) -> str:
    """Return in words since when the fleet lacks instances; a launch begins the time again."""
    if saved is None or saved.below_target_since is None:
        return ""
    since = max(saved.below_target_since, sign.launched_at or saved.below_target_since)
    if at - since < timedelta(seconds=init_seconds):
        return ""
    return (
        f"EC2 holds {sign.provided} of {live.target_capacity} instances and has launched none for "
        f"{duration(at - since)}"
    )
