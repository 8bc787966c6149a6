"""Ends stuck instances without lowering their fleets' targets (docs/scale-in.md)."""

from reconciler.model.actions import TerminateInstance
from reconciler.model.ids import NodeName
from reconciler.model.plan import Held
from reconciler.planner.cycle import Cycle, Removal
from reconciler.planner.fleets.stuck_ends import STUCK_CAP
from reconciler.planner.text import duration


def propose(cycle: Cycle) -> None:
    """End each stuck instance, the oldest first, as far as the limits allow."""
    for stuck in cycle.inventory.stuck:
        status, instance = cycle.statuses.get(stuck.key), stuck.instance
        if status is None or status.live is None or instance.launched_at is None:
            continue
        if not cycle.stuck_ends.take(instance.id):
            cycle.held.append(Held(node=NodeName(""), code=STUCK_CAP, instance=instance.id))
            continue
        age = duration(cycle.at - instance.launched_at)
        action = TerminateInstance(
            instance=instance.id,
            node=None,
            fleet=stuck.key.name,
            fleet_id=instance.fleet_id or status.live.id,
            provider=status.settings.provider,
            region=stuck.key.region,
            decrement=False,
            precondition="never-joined",
            policy="stuck-instance",
            because=f"launched {age} ago and still no node: "
            "its fleet launches another, unless its target falls",
        )
        cycle.removals.append(
            Removal(key=stuck.key, node=None, instance=instance.id, actions=(action,))
        )
