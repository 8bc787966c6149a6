"""What a Terraform plan means for the running pods, according to the planner; pure.

The nodes of every fleet that the plan would change, replace or destroy are assumed to be gone and
their pods to be pending; one planning cycle with the new config says where they would go.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from reconciler.gitops.terraform_plan.planned import PlannedFleet
from reconciler.model.cluster import Node, Pod
from reconciler.model.ids import NodeName
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from reconciler.model.unplaceable import Unplaceable
from reconciler.planner.placement.kinds import REGION
from reconciler.planner.planner import plan
from reconciler.planner.settings import PlannerSettings

FLEET_LABEL: Final = "fleet"
_TOUCHED: Final = frozenset({"update", "replace", "delete"})


@dataclass(frozen=True, slots=True, kw_only=True)
class PodImpact:
    """Says where the pods of one fleet go that the plan touches."""

    fleet: str
    nodes: int
    pods: int
    """Without pods of DaemonSets, static pods and finished ones."""
    places: Mapping[str, int]
    """Where they would go: pods by fleet; `existing nodes` for free room."""
    unplaceable: tuple[tuple[str, str], ...] = ()
    """Pods that no node could take, with the codes of the reasons; sorted."""


def pod_impacts(
    planned: Sequence[PlannedFleet], snapshot: Snapshot, settings: PlannerSettings
) -> tuple[PodImpact, ...]:
    """Return one entry per fleet that the plan touches and that has nodes, by name.

    Args:
        planned: The fleets of the Terraform plan.
        snapshot: The current cluster; EC2's part is ignored.
        settings: Settings of the new config.
    """
    touched = {(f.name, f.region) for f in planned if f.step in _TOUCHED or f.changed}
    fleet_of = {
        node.name: node.labels[FLEET_LABEL]
        for node in snapshot.cluster.nodes
        if any(_is_node_of(node, *fleet) for fleet in touched)
    }
    if not fleet_of:
        return ()
    moving = {pod.key: pod for pod in snapshot.cluster.pods if _moves(pod, fleet_of)}
    cluster = replace(
        snapshot.cluster,
        nodes=tuple(n for n in snapshot.cluster.nodes if n.name not in fleet_of),
        pods=tuple(
            _without_nodes(pod, fleet_of) for pod in snapshot.cluster.pods if _stays(pod, fleet_of)
        ),
    )
    # What `raise_limits` puts off to a later cycle is no lack of a place.
    unhurried = replace(settings, raise_limits=None)
    made = plan(replace(snapshot, cluster=cluster, cloud=None), unhurried)
    return tuple(
        _impact(name, fleet_of, [p for p in moving.values() if fleet_of[_node(p)] == name], made)
        for name in sorted(set(fleet_of.values()))
    )


def _is_node_of(node: Node, fleet: str, region: str) -> bool:
    """Return whether a node is of this fleet: the same fleet of other Regions has other nodes.

    Where the plan or the node does not say the Region, it may be.
    """
    there = node.labels.get(REGION) or region
    return node.labels.get(FLEET_LABEL) == fleet and there == (region or there)


def _node(pod: Pod) -> NodeName:
    assert pod.node_name is not None, "asked of bound pods only"
    return pod.node_name


def _moves(pod: Pod, fleet_of: Mapping[NodeName, str]) -> bool:
    """Return whether the pod would have to go somewhere else."""
    bound = pod.node_name is not None and pod.node_name in fleet_of
    return bound and not (pod.daemon or pod.mirror or pod.finished or pod.deleting)


def _stays(pod: Pod, fleet_of: Mapping[NodeName, str]) -> bool:
    """Return whether the pod still exists, bound or waiting, when those nodes are gone."""
    return pod.node_name not in fleet_of or _moves(pod, fleet_of)


def _without_nodes(pod: Pod, fleet_of: Mapping[NodeName, str]) -> Pod:
    if not _moves(pod, fleet_of):
        return pod
    return replace(
        pod,
        node_name=None,
        nominated_node_name=None,
        phase="Pending",
        scheduled_at=None,
        started_at=None,
    )


def _impact(
    name: str, fleet_of: Mapping[NodeName, str], pods: Sequence[Pod], made: Plan
) -> PodImpact:
    keys = {pod.key for pod in pods}
    places = Counter(
        placement.fleet or "existing nodes"
        for placement in made.placements
        if placement.pod in keys
    )
    return PodImpact(
        fleet=name,
        nodes=sum(1 for fleet in fleet_of.values() if fleet == name),
        pods=len(pods),
        places=dict(sorted(places.items())),
        unplaceable=tuple(
            sorted(
                (str(unplaceable.pod), _codes(unplaceable))
                for unplaceable in made.unplaceable
                if unplaceable.pod in keys
            )
        ),
    )


def _codes(each: Unplaceable) -> str:
    return ", ".join(sorted({reason.code for reason in each.reasons}))


def impact_json(impact: PodImpact) -> dict[str, Any]:
    """Return it as in `report.json`."""
    return {
        "fleet": impact.fleet,
        "nodes": impact.nodes,
        "pods": impact.pods,
        "places": dict(impact.places),
        "unplaceable": [{"pod": pod, "codes": codes} for pod, codes in impact.unplaceable],
    }
