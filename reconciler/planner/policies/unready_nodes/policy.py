"""Nodes that have not been Ready for `unready_time` (docs/scale-in.md)."""

from collections import Counter
from datetime import datetime, timedelta

from reconciler.model.actions import AnyAction, DeleteNode, TerminateInstance
from reconciler.model.cluster import Node
from reconciler.model.ids import FleetId, FleetKey, Region
from reconciler.planner.cycle import Cycle, Removal
from reconciler.planner.demand import FLEET
from reconciler.planner.disruption.blockers import protection
from reconciler.planner.disruption.drains import terms_of
from reconciler.planner.disruption.kept import keep
from reconciler.planner.fleets.inventory import is_draining, is_joining
from reconciler.planner.rules import first_irreplaceable, judge_of
from reconciler.planner.suspicion import is_outage
from reconciler.planner.text import duration


def propose(cycle: Cycle) -> None:
    """Delete what is only a name; replace what runs but does not answer."""
    inventory = cycle.inventory
    outages = _outages(cycle)
    for node in cycle.nodes.values():
        key = inventory.fleet_of_node.get(node.name)
        if key is None or node.unreadable or node.deleting or node.instance_id is None:
            continue
        if node.name in inventory.leaving:
            continue
        if is_draining(node) and not inventory.is_unseen(node, key):
            continue  # its drain ends it
        since = _unready_since(cycle, node)
        if since is not None and key.region in outages and node.name in inventory.instance_of_node:
            keep(cycle, node, "not-ready", outages[key.region])
        elif since is not None:
            _resolve(cycle, node, key, duration(cycle.at - since))
    for machine, aliases in inventory.duplicate_nodes.items():
        for name in aliases:
            if FLEET in cycle.nodes[name].labels and name not in inventory.fleet_of_node:
                why = f"its instance is the node {machine}: this is but a name, for you to delete"
                keep(cycle, cycle.nodes[name], "unreadable", why)


def _outages(cycle: Cycle) -> dict[Region, str]:
    """Regions where so many nodes are silent that none of them is ended, and why.

    Before a second full list agrees the safety stop holds them all.
    """
    if cycle.snapshot.cluster.relists < 2:
        return {}
    ours: Counter[Region] = Counter()
    silent: Counter[Region] = Counter()
    init = cycle.settings.instance_init_seconds
    for name, key in cycle.inventory.fleet_of_node.items():
        if name not in cycle.inventory.leaving:
            node = cycle.nodes[name]
            ours[key.region] += 1
            silent[key.region] += not (node.ready or is_joining(node, cycle.at, init))
    return {
        region: f"{silent[region]} of {count} nodes are not Ready: their network is to blame, or "
        "the API server's, and none is ended for it"
        for region, count in ours.items()
        if is_outage(silent[region], count)
    }


def _unready_since(cycle: Cycle, node: Node) -> datetime | None:
    """Since when, if for longer than `unready_time`; a node still on its way is not unready."""
    if node.ready or is_joining(node, cycle.at, cycle.settings.instance_init_seconds):
        return None
    since = node.ready_changed_at or node.created_at
    if since is None or cycle.at - since < timedelta(seconds=cycle.settings.unready_seconds):
        return None
    return since


def _resolve(cycle: Cycle, node: Node, key: FleetKey, spent: str) -> None:
    """An instance is gone only where others of its region, and its fleet, were answered."""
    instance = cycle.inventory.instance_of_node.get(node.name)
    if instance is None:
        if cycle.inventory.is_unseen(node, key) and not cycle.statuses[key].out_of_reach:
            because = f"not Ready for {spent}, and its instance is gone"
            _remove(
                cycle,
                node,
                key,
                DeleteNode(
                    node=node.name,
                    uid=node.uid,
                    instance=node.instance_id,
                    provider=cycle.statuses[key].settings.provider,
                    region=key.region,
                    policy="stuck-instance",
                    because=because,
                ),
            )
        return
    if cycle.statuses[key].out_of_reach:
        return  # no fleet would launch another
    barred = _bar(cycle, node, key)
    if barred:
        keep(cycle, node, "may-still-run", f"not Ready for {spent}, but {barred}")
        return
    status = cycle.statuses[key]
    _remove(
        cycle,
        node,
        key,
        TerminateInstance(
            instance=instance.id,
            node=node.name,
            fleet=key.name,
            fleet_id=instance.fleet_id or (status.live.id if status.live else FleetId("")),
            provider=status.settings.provider,
            region=key.region,
            decrement=False,
            precondition="not-ready",
            policy="stuck-instance",
            because=f"not Ready for {spent} while its instance is {instance.state}: its fleet "
            "launches another, unless its target falls",
        ),
    )


def _bar(cycle: Cycle, node: Node, key: FleetKey) -> str:
    """What an operator would wait for; empty when the node may be replaced.

    Work may go on where a kubelet has only lost its connection. Pods that Kubernetes
    has begun to delete (as it does five minutes after the kubelet fell silent) no longer hold it.
    """
    protected = protection(cycle, node)
    if protected:
        return protected.detail
    status = cycle.statuses[key]
    judge = judge_of(terms_of(status.settings.scale_in), cycle.budgets.coverage)
    names = (node.name, *cycle.inventory.duplicate_nodes.get(node.name, ()))
    pods = [pod for name in names for pod in cycle.pods_on.get(name, ())]
    kept = first_irreplaceable(judge, pods)
    return f"{kept[0].key} may still run there: {kept[1].reason}" if kept else ""


def _remove(cycle: Cycle, node: Node, key: FleetKey, action: AnyAction) -> None:
    removal = Removal(key=key, node=node.name, instance=node.instance_id, actions=(action,))
    cycle.removals.append(removal)
