"""Fleets whose new version may not work: none of their nodes may replace a node that works."""

from reconciler.model.ids import FleetKey
from reconciler.planner.disruption.blocker import Blocker
from reconciler.planner.fleets.updates.outdated import Outdated
from reconciler.planner.view import ClusterView


def unproven_version(
    view: ClusterView, key: FleetKey, outdated: Outdated | None = None
) -> Blocker | None:
    """Return why no node of the fleet may replace another now; None if one may.

    While its rolling update is halted, or its first new node is watched, replacements for other
    reasons would continue the update. Pending pods get a node of the new version all the same.

    Args:
        view: The facts.
        key: The fleet of the new node.
        outdated: Why a node is to be replaced; None if only its use is the reason. The update's own
            choices are not blocked here, and nodes that EC2 takes back are replaced in any case.
    """
    update = view.inventory.updates.get(key)
    if update is None or update.state not in {"halted", "canary"}:
        return None
    if outdated is not None and (outdated.has_batch or outdated.reason == "rebalance"):
        return None
    if update.halted:
        because = f"the rolling update of {key.name} is halted: {update.because}"
        return Blocker("rolling-update-halted", f"it is not replaced: {because}")
    because = f"the first new node of {key.name} is not proven: {update.because}"
    return Blocker("rolling-update", f"it is not replaced: {because}")
