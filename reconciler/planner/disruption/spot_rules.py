"""The rules of the spot rescheduler: which nodes it drains and fills, and when pods may move."""

from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from operator import attrgetter
from typing import Final, Literal

import numpy as np

from reconciler.model.cluster import Node, Pod
from reconciler.model.counted_pods import counts
from reconciler.model.ids import NodeName
from reconciler.model.plan import NodesByKind
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.disruption.drains.actions import terms_of
from reconciler.planner.disruption.drains.idleness import counted
from reconciler.planner.disruption.simulator.relocation import grouped
from reconciler.planner.disruption_settings import ScaleInSettings, SpotRescheduler
from reconciler.planner.placement.classes import Group
from reconciler.planner.rules import Judge, judge_of
from reconciler.planner.view import ClusterView

POLICY: Final = "spot-reschedule"


def is_spot(node: Node, rules: SpotRescheduler) -> bool:
    """Return whether pods may be moved to the node."""
    return rules.spot.matches(node.labels)


def is_on_demand(node: Node, rules: SpotRescheduler) -> bool:
    """Return whether pods may be moved off the node; a node with both labels is a spot node."""
    return rules.on_demand.matches(node.labels) and not is_spot(node, rules)


def drain_settings(settings: ScaleInSettings, rules: SpotRescheduler) -> ScaleInSettings:
    """Return a fleet's scale-in settings with the rescheduler's times and its rule on bare pods."""
    return replace(
        settings,
        pod_eviction_timeout_seconds=rules.pod_eviction_timeout_seconds,
        graceful_termination_max_seconds=rules.graceful_termination_max_seconds,
        move_bare_pods=rules.move_bare_pods,
    )


def judge_for(builder: PlanBuilder, settings: ScaleInSettings) -> Judge:
    """Return the rules on moving pods; critical pods stay.

    Args:
        builder: The plan.
        settings: The result of `drain_settings`.
    """
    terms = replace(terms_of(settings), critical_pods_stay=True)
    return judge_of(terms, builder.budgets.coverage, builder.view.at)


def by_cpu(view: ClusterView, pods: Sequence[Pod]) -> list[Group]:
    """Return the pods by class, in the order in which they are placed: the most CPU first."""
    return sorted(grouped(view, pods), key=lambda group: -int(group[0].requests[0]))


def spot_rows(builder: PlanBuilder, rules: SpotRescheduler, rows: AbstractSet[int]) -> list[int]:
    """Return the spot nodes among the rows, the one with the most free CPU first."""
    view = builder.view
    found = [
        row for name, row in view.row_of.items() if row in rows and is_spot(view.nodes[name], rules)
    ]
    free = builder.sim.free[found, 0]
    return [found[at] for at in np.argsort(-free, kind="stable")]


def nodes_by_kind(view: ClusterView) -> tuple[NodesByKind, ...]:
    """Return how many nodes and pods the rescheduler considers; empty while it is off."""
    rules = view.settings.spot_rescheduler
    if rules is None:
        return ()
    nodes = view.nodes.values()
    pods = Counter[NodeName | None]({name: len(found) for name, found in view.pods_on.items()})
    for group in view.running:
        if not counts(group.pods[0]):
            pods.subtract(map(attrgetter("node_name"), group.pods))
    for name, stuck in view.stuck_terminating_on.items():
        pods[name] += len(stuck) - len(counted(stuck))
    spot = [node for node in nodes if is_spot(node, rules)]
    on_demand = [node for node in nodes if is_on_demand(node, rules)]
    return (_kind("on-demand", on_demand, pods), _kind("spot", spot, pods))


def _kind(
    kind: Literal["on-demand", "spot"], nodes: Sequence[Node], pods: Counter[NodeName | None]
) -> NodesByKind:
    return NodesByKind(kind=kind, nodes=len(nodes), pods=sum(pods[node.name] for node in nodes))
