"""Which silent nodes may be ended although so many are silent that it looks like an outage.

If none ever were, machines that died together would be billed for good. If the network is cut,
they still run, and so may their pods. So only nodes go that have been silent for long and hold no
pod that may be at work, a few at a time, while the API server hears from other nodes.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from reconciler.model.cluster import Node
from reconciler.model.counted_pods import counts
from reconciler.model.ids import NodeName, Region
from reconciler.model.text import counted_noun, rfc3339
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.nodes.outages import shows_outage
from reconciler.planner.nodes.starting import is_joining
from reconciler.planner.view import ClusterView

OUTAGE: Final = "outage"
"""Code of `held`."""
SILENT_FOR: Final = timedelta(hours=1)
"""How long a node has to be silent. Kubernetes gives pods of silent nodes up after five minutes,
and later where many nodes of a zone are silent."""
AT_A_TIME: Final = 3
"""How many nodes of a region are being ended at once."""


class EndsInOutages:
    """Decides for the nodes of regions with an outage, one after the other, which may be ended.

    Args:
        builder: The plan.
        outages: The regions with an outage, and in words what shows it.
    """

    def __init__(self, builder: PlanBuilder, outages: Mapping[Region, str]) -> None:
        self._builder = builder
        self._barred = {region: _barred(builder.view, region) for region in outages}
        self._outages = outages

    def why_not(self, node: Node, region: Region, since: datetime) -> str:
        """Return in words why the node stays; empty if it may be ended now.

        Args:
            node: A node that has not been Ready for `unready_time`.
            region: Its region.
            since: Since when it has not been Ready.
        """
        if region not in self._outages:
            return ""
        view = self._builder.view
        why = self._barred[region]
        if may_be_at_work(view, node.name):
            why = "its pods may still run there"
        elif not why and view.at - since < SILENT_FOR:
            until = rfc3339(since + SILENT_FOR)
            why = f"no pod that counts is left there: it may be ended from {until}"
        elif not why and self._being_ended(region) >= AT_A_TIME:
            why = f"{AT_A_TIME} others are being ended"
        return f"{self._outages[region]}; {why}" if why else ""

    def _being_ended(self, region: Region) -> int:
        """Return how many nodes of the region EC2 ends now, or would be ended by this plan."""
        inventory = self._builder.view.inventory
        ours = inventory.leaving & inventory.fleet_of_node.keys()
        ending = {name for name in ours if inventory.fleet_of_node[name].region == region}
        begun = {removal.node for removal in self._builder.removals if removal.key.region == region}
        return len(ending | begun)


def may_be_at_work(view: ClusterView, name: NodeName) -> bool:
    """Return whether a pod that counts, and that Kubernetes has not given up, is on the node."""
    names = (name, *view.inventory.duplicate_nodes.get(name, ()))
    pods = (pod for node_name in names for pod in view.pods_on.get(node_name, ()))
    return any(counts(pod) and not pod.deleting for pod in pods)


def _barred(view: ClusterView, region: Region) -> str:
    """Return in words why no silent node of the region may be ended; empty if some may.

    With each that is ended the others are a smaller share of the nodes, as another is launched in
    its place. That must not make nodes go whose pods may still run: they have to be so many by
    themselves.
    """
    nodes, ready, at_work = 0, 0, 0
    for name, key in view.inventory.fleet_of_node.items():
        node = view.nodes[name]
        if key.region != region or name in view.inventory.leaving:
            continue
        nodes += 1
        instance = view.inventory.instance_of_node.get(name)
        if node.ready or is_joining(node, instance, view.at, view.settings):
            ready += node.ready
        elif may_be_at_work(view, name):
            at_work += 1
    if not ready:
        return "no other node of the region is Ready"
    if at_work and not shows_outage(at_work, nodes):
        return f"{counted_noun(at_work, 'node')} with pods would be ended too, once it is gone"
    return ""
