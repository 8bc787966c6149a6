"""Fleets whose new version may not work: no node of theirs comes in the place of one that works."""

from reconciler.model.ids import FleetKey
from reconciler.planner.disruption.blocker import Blocker
from reconciler.planner.fleets.updates.outdated import Outdated
from reconciler.planner.view import ClusterView


def unproven_version(
    view: ClusterView, key: FleetKey, outdated: Outdated | None = None
) -> Blocker | None:
    """Return why no node of the fleet is asked for in the place of another; None when one may be.

    While its rolling update is halted, or its first new node is watched, nodes of other reasons
    would go on with the update. Pods that wait for a node get one of the new version all the same.

    Args:
        view: The facts.
        key: The fleet whose node would come.
        outdated: Why a node is to be replaced; None: only its use speaks. What the update itself
            has chosen is its own affair, and what EC2 takes back goes in any case.
    """
    update = view.inventory.updates.get(key)
    if update is None or update.state not in {"halted", "canary"}:
        return None
    if outdated is not None and (outdated.has_batch or outdated.reason == "rebalance"):
        return None
    if update.halted:
        because = f"the rolling update of {key.name} is halted: {update.because}"
        return Blocker("rolling-update-halted", f"no node comes in its place: {because}")
    because = f"the first new node of {key.name} is not proven: {update.because}"
    return Blocker("rolling-update", f"no node comes in its place: {because}")
