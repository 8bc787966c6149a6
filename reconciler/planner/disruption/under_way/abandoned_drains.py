"""Gives back draining nodes whose fleet the config no longer has.

No method looks at such a node, so its taint would stay. A node is given back only if it is certain
that this program drained it: EC2 shows it in a fleet that has the cluster's tag and that the config
does not name in that region, or its fleet was ours and is gone. Where EC2 is no longer asked (about
a region, or for one kind of fleet) only the age of the drain can tell.
"""

from datetime import timedelta
from typing import get_args

from reconciler.model.actions import DRAIN_STARTED
from reconciler.model.cluster import Node
from reconciler.model.fleet import Provider
from reconciler.model.ids import FleetKey
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.disruption.drains.actions import drain_started, end_of_drain, give_back
from reconciler.planner.fleets.live_fleet import LIVE_STATES
from reconciler.planner.nodes.drain_taints import (
    is_draining,
    is_draining_by_us,
    is_draining_voluntarily,
)
from reconciler.planner.nodes.interruptions import read_notice
from reconciler.planner.placement.kinds import REGION
from reconciler.planner.view import ClusterView

_ABANDONED_AFTER = timedelta(days=1)
"""After this time a drain without a fleet counts as abandoned.

No drain of ours takes so long; a younger one may belong to another program, which drains nodes in
its own region.
"""

_ALL_PROVIDERS = frozenset[Provider](get_args(Provider))


def give_back_abandoned(builder: PlanBuilder, node: Node) -> None:
    """Give back a draining node of no fleet of the config, unless EC2 is about to take it back."""
    view = builder.view
    if not (
        is_draining_by_us(node) or (DRAIN_STARTED in node.annotations and not is_draining(node))
    ):
        return
    notice = read_notice(node)
    if notice is not None and notice.in_force(view.at):
        return
    because = _why_abandoned(view, node)
    if because is None:
        return
    if is_draining(node):
        builder.cancel_drain(give_back(node, "scale-in", because))
    else:
        builder.cancel_drain(end_of_drain(view, node, "scale-in", because))


def _why_abandoned(view: ClusterView, node: Node) -> str | None:
    """Return why no program continues the drain of the node; None if one may, or if in doubt."""
    if _is_of_unnamed_fleet(view, node):
        return "the config does not name its fleet there any more"
    orphans = view.inventory.orphans
    if node.name in orphans.nodes:
        certain = any(orphan.certain and orphan.node is node for orphan in orphans.found)
        # Orphans that are drained voluntarily are ended or given back by the method `orphaned`.
        return "its fleet is gone" if certain and not is_draining_voluntarily(node) else None
    started = drain_started(view, node)
    if started is None or view.at - started <= _ABANDONED_AFTER or not _is_out_of_sight(view, node):
        return None
    if node.labels.get(REGION) not in view.settings.observed_regions:
        return "the config does not name its region any more"
    return "the config has no fleet of its kind any more"


def _is_of_unnamed_fleet(view: ClusterView, node: Node) -> bool:
    """Return whether its instance is in a live fleet that the config lacks in that region."""
    instance, cloud = view.inventory.instance_of_node.get(node.name), view.snapshot.cloud
    if instance is None or instance.gone or cloud is None:
        return False
    known = {key for fleet in view.settings.fleets() for key in fleet.fleet_keys()}
    return any(
        (fleet.region, fleet.id) == (instance.region, instance.fleet_id)
        and fleet.state in LIVE_STATES
        and FleetKey(name=fleet.name, region=fleet.region) not in known
        for fleet in cloud.fleets
    )


def _is_out_of_sight(view: ClusterView, node: Node) -> bool:
    """Return whether EC2 is no longer asked about the node's region or about one kind of fleet.

    A region that is asked and does not answer now (`silent`) is not out of sight.
    """
    region, cloud = node.labels.get(REGION), view.snapshot.cloud
    if region is None or cloud is None or not cloud.instances_known or region in cloud.silent:
        return False
    if node.name in view.inventory.instance_of_node:
        return False
    asked = {*view.settings.observed_regions, *cloud.regions}
    return region not in asked or bool(cloud.providers and _ALL_PROVIDERS - cloud.providers)
