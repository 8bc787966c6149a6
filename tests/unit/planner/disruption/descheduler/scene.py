"""Small clusters with a descheduler: words for what the tests are about."""

from dataclasses import replace
from typing import Any

from reconciler.model.actions import EvictPod
from reconciler.model.cluster import Node, Pod
from reconciler.model.plan import Plan
from reconciler.planner.descheduler_settings import (
    DeschedulerSettings,
    EvictorSettings,
    PolicyArguments,
    Profile,
)
from reconciler.planner.explain.explain import explain
from reconciler.planner.settings import PlannerSettings
from tests.builders import ago, make_node, make_settings, make_snapshot
from tests.unit.planner.disruption.scale_in.scene import make_scene_fleet, on, planned

FLEET = make_scene_fleet(min_capacity=50, utilization_threshold=0.0)
"""Nothing of it is ever removed: what moves, the descheduler moves."""
OLD = 7200.0
Objects = list[Node | Pod]


def descheduling(
    *policies: PolicyArguments, evictor: EvictorSettings | None = None, **changed: Any
) -> PlannerSettings:
    """Settings with one profile of these policies; keywords of DeschedulerSettings."""
    profile = Profile(policies=policies, evictor=evictor or EvictorSettings())
    return replace(
        make_settings(FLEET), descheduler=DeschedulerSettings(profiles=(profile,), **changed)
    )


def nodes(*names: str, **changed: Any) -> list[Node]:
    """Nodes of 4 CPUs."""
    return [make_node(name, FLEET, **changed) for name in names]


def old(node: str, name: str | None = None, seconds: float = OLD, **changed: Any) -> Pod:
    """A pod that has been on its node for long."""
    times = {"created_at": ago(seconds), "started_at": ago(seconds)}
    return on(node, name, **{"ready": True, **times, **changed})


def evicted(made: Plan) -> dict[str, str]:
    """The evicted pods, each with the descheduler's policy."""
    return {
        a.pod.name: a.pod_policy or ""
        for a in made.actions
        if isinstance(a, EvictPod) and a.policy == "deschedule"
    }


def said(settings: PlannerSettings, pod: Pod, *objects: Node | Pod, **changed: Any) -> str:
    """What the explanation of the pod says."""
    made = planned(settings, pod, *objects, **changed)
    snapshot = make_snapshot(pod, *objects, **changed)
    return explain(snapshot, settings, made, pods=[str(pod.key)]).pods[0].because
