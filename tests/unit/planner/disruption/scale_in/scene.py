"""Small clusters that scale in: words for what the tests are about."""

from dataclasses import replace
from typing import Any

from reconciler.model.actions import (
    DRAIN_STARTED,
    UNNEEDED_SINCE,
    UNNEEDED_TAINT,
    AnnotateNode,
    AnyAction,
    EvictPod,
    TaintNode,
    UntaintNode,
)
from reconciler.model.cluster import Node, Pod
from reconciler.model.fleet import Fleet, Instance
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import InstanceId
from reconciler.model.plan import Plan
from reconciler.model.text import rfc3339
from reconciler.planner.disruption_settings import ScaleInSettings
from reconciler.planner.planner import plan
from reconciler.planner.settings import FleetSettings, PlannerSettings
from tests.builders import (
    ago,
    kept_proof,
    make_cloud,
    make_cloud_of,
    make_fleet,
    make_fleet_settings,
    make_instance,
    make_node,
    make_pod,
    make_settings,
    make_snapshot,
)

FLEET = make_fleet_settings()
"""Whose nodes most tests are about."""


def make_scene_fleet(**changed: Any) -> FleetSettings:
    """A fleet of 4-CPU nodes; keywords of ScaleInSettings go there."""
    known = set(ScaleInSettings.__dataclass_fields__)
    scale_in = ScaleInSettings(**{k: changed.pop(k) for k in list(changed) if k in known})
    return make_fleet_settings(scale_in=scale_in, **changed)


def unneeded(name: str, fleet: FleetSettings, seconds: float = 3600, **changed: Any) -> Node:
    """A node whose timer has been running."""
    return make_node(name, fleet, annotations=noted({UNNEEDED_SINCE: seconds}, changed), **changed)


def drained(name: str, fleet: FleetSettings, seconds: float = 30, **changed: Any) -> Node:
    """A node whose drain began some seconds ago."""
    annotations = noted({DRAIN_STARTED: seconds, UNNEEDED_SINCE: 3600}, changed)
    return make_node(name, fleet, draining=True, annotations=annotations, **changed)


def noted(times: dict[str, float], changed: dict[str, Any]) -> FrozenMap[str, str]:
    """Annotations of ours with times some seconds ago, and further ones."""
    ours = {key: rfc3339(ago(seconds)) for key, seconds in times.items()}
    return FrozenMap({**ours, **changed.pop("annotations", {})})


def on(node: str, name: str | None = None, cpu: str = "500m", **changed: Any) -> Pod:
    """A ReplicaSet's pod on a node."""
    return make_pod(name or f"on-{node}", node=node, cpu=cpu, memory="64Mi", **changed)


def full(node: str, cpu: str = "2500m") -> Pod:
    """A pod that keeps a 4-CPU node above the threshold and leaves some room."""
    return on(node, f"full-{node}", cpu)


def planned(
    settings: PlannerSettings | FleetSettings, *objects: Node | Pod, **changed: Any
) -> Plan:
    """The plan, with fleets whose target is the number of their nodes; keywords of ClusterState."""
    if isinstance(settings, FleetSettings):
        settings = make_settings(settings)
    nodes = [o for o in objects if isinstance(o, Node)]
    lives = {}
    for fleet in settings.fleets():
        own = [n for n in nodes if n.labels.get("fleet") == fleet.name]
        lives[fleet.name] = make_fleet(fleet, changed.pop("target", len(own)))
    cloud = make_cloud_of(nodes, *lives.values())
    return plan(make_snapshot(*objects, cloud=changed.pop("cloud", cloud), **changed), settings)


def instance(live: Fleet, name: str, seconds: float, **changed: Any) -> Instance:
    """A running instance, launched some seconds ago, of which no node is known."""
    return replace(
        make_instance(make_node("x", FLEET), live, launched_at=ago(seconds), **changed),
        id=InstanceId(name),
    )


def with_instances(count: int, seconds: float, *objects: Any, **changed: Any) -> Plan:
    """The plan of a fleet with so many instances, none of them a node, of a cluster once proven."""
    live = make_fleet(FLEET, count)
    found = [instance(live, f"i-{i}", seconds + i) for i in range(count)]
    cloud = make_cloud(live, instances=found, instances_known=changed.pop("known", True))
    return plan(
        make_snapshot(*objects, cloud=cloud, **kept_proof(live), **changed), make_settings(FLEET)
    )


def told(made: Plan, kind: type[AnyAction]) -> list[str]:
    """The nodes, or pods for evictions, of the plan's actions of one kind."""
    return [
        a.pod.name if isinstance(a, EvictPod) else str(getattr(a, "node", ""))
        for a in made.actions
        if isinstance(a, kind) and not is_soft(a)
    ]


def is_soft(action: AnyAction) -> bool:
    """Whether it puts the soft taint on or takes it off, which moves nothing."""
    match action:
        case TaintNode(taint=taint):
            return taint.key == UNNEEDED_TAINT
        case UntaintNode(key=key):
            return key == UNNEEDED_TAINT
        case _:
            return False


def annotations_set(made: Plan) -> set[tuple[str, str, str | None]]:
    """Node, short key and value of every annotation that the plan sets."""
    return {
        (str(a.node), a.key.rpartition("/")[2], a.value)
        for a in made.actions
        if isinstance(a, AnnotateNode)
    }


def moves(made: Plan) -> dict[str, str | None]:
    """Where the plan moves pods."""
    return {p.pod.name: p.node for p in made.placements if p.moved_from is not None}


def kept(made: Plan) -> dict[str, str]:
    """Why nodes stay."""
    return {k.node: k.code for k in made.kept}
