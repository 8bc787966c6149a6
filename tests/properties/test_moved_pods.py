"""Pods that scale-in moves can bind where they are sent, by kube-scheduler's own rules."""

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.actions import begins_drain
from reconciler.model.cluster import Node, Pod
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from reconciler.planner.disruption_settings import ScaleInSettings
from reconciler.planner.planner import plan
from reconciler.planner.settings import PlannerSettings
from tests.builders import (
    HOSTNAME,
    ZONE,
    make_fleet_settings,
    make_node,
    make_pod,
    make_settings,
    make_snapshot,
    near,
    spread,
)
from tests.properties.case import Case
from tests.properties.checker import Replay
from tests.properties.mix import Mix
from tests.properties.strategies import cases

EAGER = ScaleInSettings(
    unneeded_seconds=0,
    utilization_threshold=0.95,
    non_empty_at_once_max=3,
    move_bare_pods=True,
    move_local_storage=True,
    move_system_pods=True,
)


def eager(settings: PlannerSettings) -> PlannerSettings:
    """The settings with fleets that empty whatever they can."""
    return replace(
        settings,
        sectors=tuple(
            replace(
                sector,
                fleets=tuple(replace(f, scale_in=EAGER, min_capacity=0) for f in sector.fleets),
            )
            for sector in settings.sectors
        ),
    )


def evicted(snapshot: Snapshot, made: Plan) -> Snapshot:
    """The moment after the evictions: moved pods wait, their nodes are tainted."""
    moved = {p.pod for p in made.placements if p.moved_from is not None}
    taints = {a.node: a.taint for a in made.actions if begins_drain(a)}
    cluster = snapshot.cluster

    def tainted(node: Node) -> Node:
        more = (taints[node.name],) if node.name in taints else ()
        return replace(node, taints=(*node.taints, *more))

    pods = tuple(
        replace(p, node_name=None, phase="Pending") if p.key in moved else p for p in cluster.pods
    )
    nodes = tuple(map(tainted, cluster.nodes))
    return replace(snapshot, cluster=replace(cluster, pods=pods, nodes=nodes))


RULES: dict[str, dict[str, Any]] = {
    "free": {},
    "apart": {"pod_anti_affinity": (near(HOSTNAME, app="apart"),)},
    "zones-apart": {"pod_anti_affinity": (near(ZONE, app="zones-apart"),)},
    "together": {"pod_affinity": (near(ZONE, app="together"),)},
    "with-free": {"pod_affinity": (near(HOSTNAME, app="free"),)},
    "even-hosts": {"topology_spread": (spread(HOSTNAME, 1, app="even-hosts"),)},
    "even-zones": {"topology_spread": (spread(ZONE, 1, app="even-zones"),)},
}


@st.composite
def spread_out(draw: st.DrawFn) -> Case:
    """Lightly used nodes in three zones, with running pods under rules between them."""
    fleet = make_fleet_settings(cpu=4)
    names = [f"n{i}" for i in range(draw(st.integers(2, 6)))]
    zones = {name: f"us-west-2{draw(st.sampled_from('abc'))}" for name in names}
    objects: list[Node | Pod] = [make_node(n, fleet, zone=zones[n]) for n in names]
    for index in range(draw(st.integers(1, 9))):
        app = draw(st.sampled_from(sorted(RULES)))
        objects.append(
            make_pod(
                f"{app}-{index}",
                node=draw(st.sampled_from(names)),
                cpu=draw(st.sampled_from(["200m", "600m", "1500m"])),
                memory="64Mi",
                labels={"app": app},
                **RULES[app],
            )
        )
    return Case(settings=make_settings(fleet), snapshot=make_snapshot(*objects))


@given(case=st.one_of(cases(Mix(trouble=False, nodes_max=7)), spread_out(), spread_out()))
def test_pod_that_is_moved_can_bind_where_it_is_sent(case: Case) -> None:
    """A drained pod would be pending, and a node be bought for it."""
    settings = eager(case.settings)
    made = plan(case.snapshot, settings)
    moved = {str(p.pod) for p in made.placements if p.moved_from is not None}
    placements = tuple(replace(p, moved_from=None) for p in made.placements)
    after = Replay(evicted(case.snapshot, made), settings, replace(made, placements=placements))
    faults = [f for f in after.feasibility() if f.split(" on ")[0].split(":")[0] in moved]
    assert faults == []
