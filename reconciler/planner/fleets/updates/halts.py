"""Saves on the Lease which rolling updates are halted and which versions are proven.

Both are of one version, and are forgotten when it changes. A halt lasts until a person lifts it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from reconciler.model.ids import FleetKey, Region
from reconciler.model.saved_state import SavedFleetState
from reconciler.planner.fleets.fleet_nodes import FleetNodes
from reconciler.planner.fleets.live_fleet import is_version_known
from reconciler.planner.fleets.updates.canary import Canary
from reconciler.planner.fleets.updates.update import Update


def halted_after(
    saved_states: Mapping[tuple[str, Region], SavedFleetState],
    fleets: Iterable[FleetNodes],
    updates: Mapping[FleetKey, Update],
) -> dict[tuple[str, Region], SavedFleetState]:
    """Return the saved states with what this snapshot shows, without that of earlier versions.

    While EC2 does not return a fleet's version, what is saved about it stays.

    Args:
        saved_states: By fleet and region, after a person's resumes.
        fleets: All fleets.
        updates: Their rolling updates.
    """
    after = dict(saved_states)
    for fleet in fleets:
        place = (fleet.key.name, fleet.key.region)
        update = updates.get(fleet.key)
        if update is None and place not in after:
            continue
        saved = known = after.get(place) or SavedFleetState(fleet=place[0], region=place[1])
        if fleet.live is not None and is_version_known(fleet.live):
            saved = _without_earlier(known, fleet.live.launch_template_version)
        if update is not None and update.halted:
            saved = replace(saved, halted_version=update.version, halted_because=update.because)
        if update is not None and update.canary.version:
            saved = _watching(saved, update.canary)
        if saved != known:
            after[place] = saved
    return after


def _without_earlier(saved: SavedFleetState, version: str) -> SavedFleetState:
    """Return the saved state without what is of another version than this one."""
    if not version:
        return saved
    if saved.halted_version not in {"", version}:
        saved = replace(saved, halted_version="", halted_because="")
    if saved.resumed_version not in {"", version}:
        saved = replace(saved, resumed_version="")
    if saved.canary_version not in {"", version}:
        saved = _watching(saved, Canary())
    return saved


def _watching(saved: SavedFleetState, canary: Canary) -> SavedFleetState:
    return replace(
        saved,
        canary_version=canary.version,
        canary_since=canary.since,
        canary_seen_at=canary.seen_at,
        canary_proven=canary.proven,
    )


def with_resumed(
    saved_states: Mapping[tuple[str, Region], SavedFleetState], resumed: Iterable[str]
) -> dict[tuple[str, Region], SavedFleetState]:
    """Return the saved states without halts of the fleets that a person resumed.

    Args:
        saved_states: By fleet and region.
        resumed: Names of fleets.
    """
    names = frozenset(resumed)
    return {
        place: replace(
            saved, halted_version="", halted_because="", resumed_version=saved.halted_version
        )
        if place[0] in names and saved.halted_version
        else saved
        for place, saved in saved_states.items()
    }
