"""Random apps: replicas of one spec, some bound, some waiting.

Apps stand for Deployments. Names are short and zones few, so that constraints meet each other
often.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from reconciler.model.cluster import (
    HostPort,
    Node,
    Pod,
    PodPhase,
    PodPreference,
    Preference,
    Toleration,
)
from reconciler.model.ids import PodKey
from reconciler.model.selectors import NodeSelectorTerm, Requirement
from reconciler.planner.settings import FleetSettings
from tests.builders import HOSTNAME, ZONE, ago, make_pod, near, requiring, spread
from tests.properties.mix import APPS, SIZES, ZONES, Mix, rarely

TOLERATION = Toleration(key="dedicated", operator="Equal", value="x", effect="NoSchedule")


@st.composite
def app_specs(
    draw: st.DrawFn, app: str, among: Sequence[FleetSettings], mix: Mix
) -> dict[str, Any]:
    """Keywords of an app's pods."""
    changed: dict[str, Any] = {
        "cpu": draw(st.sampled_from(["100m", "500m", "1", "1500m", "3", "7"])),
        "memory": draw(st.sampled_from(["0", "500Mi", "2Gi", "6Gi", "30Gi"])),
        "labels": {"app": app},
    }
    if mix.dense:
        changed["cpu"] = draw(st.sampled_from(["100m", "500m", "1500m"]))
        changed["memory"] = draw(st.sampled_from(["0", "500Mi"]))
        return changed | draw(priorities(mix)) | draw(rules_between_pods(app, mix))
    if rarely(draw):
        changed["sector"] = draw(st.sampled_from(["primary", "other", "absent"]))
    if rarely(draw):
        changed["node_selector"] = {"fleet": draw(st.sampled_from([f.name for f in among]))}
    if rarely(draw):
        changed["node_selector"] = {ZONE: draw(st.sampled_from(ZONES))}
    if rarely(draw):
        changed["node_affinity"] = requiring(
            "size", draw(st.sampled_from(["In", "NotIn"])), "small"
        )
    if rarely(draw, 3):
        changed["tolerations"] = (TOLERATION,)
    if rarely(draw):
        address = draw(st.sampled_from(["0.0.0.0", "10.0.0.1", "10.0.0.2"]))  # noqa: S104 - as pods name it
        changed["host_ports"] = (HostPort(address=address, protocol="TCP", port=80),)
    changed |= draw(priorities(mix))
    if rarely(draw, 6):
        changed["namespace"] = draw(st.sampled_from(["other-ns", "kube-system"]))
    if rarely(draw, 4):
        changed |= draw(soft_terms(app))
    hard = draw(rules_between_pods(app, mix))
    spreads = (*changed.get("topology_spread", ()), *hard.get("topology_spread", ()))
    return changed | hard | ({"topology_spread": spreads} if spreads else {})


@st.composite
def priorities(draw: st.DrawFn, mix: Mix) -> dict[str, Any]:
    """A balloon's priority or a high one; some pods evict nobody."""
    if not rarely(draw, 2 if mix.balloons else 4):
        return {}
    priority = draw(st.sampled_from([-10, 100, 1000]))
    return {"priority": priority, "preempts": not rarely(draw, 3)}


@st.composite
def soft_terms(draw: st.DrawFn, app: str) -> dict[str, Any]:
    """Preferences for nodes and for other pods."""
    key, other = draw(st.sampled_from([HOSTNAME, ZONE])), draw(st.sampled_from([app, *APPS]))
    line = Requirement(key="size", operator="In", values=(draw(st.sampled_from(sorted(SIZES))),))
    like = Preference(weight=draw(st.integers(1, 100)), term=NodeSelectorTerm(expressions=(line,)))
    beside = PodPreference(weight=draw(st.sampled_from([-100, -1, 50])), term=near(key, app=other))
    even = replace(spread(key, draw(st.integers(1, 2)), app=other), hard=False)
    every: dict[str, Any] = {
        "node_preferences": (like,),
        "pod_preferences": (beside,),
        "topology_spread": (even,),
    }
    wanted = draw(st.sets(st.sampled_from(sorted(every)), min_size=1))
    return {name: every[name] for name in sorted(wanted)}


@st.composite
def rules_between_pods(draw: st.DrawFn, app: str, mix: Mix) -> dict[str, Any]:
    """Affinity, anti-affinity and spread, with the app's own pods or another's."""
    changed: dict[str, Any] = {}
    if mix.between_pods:
        for name in ("pod_affinity", "pod_anti_affinity"):
            if rarely(draw, 2 if mix.crowded else 5):
                key = draw(st.sampled_from([HOSTNAME, ZONE]))
                changed[name] = (near(key, app=draw(st.sampled_from([app, *APPS]))),)
    if mix.spread and rarely(draw, 2 if mix.crowded else 4):
        keys = draw(st.sampled_from([(HOSTNAME,), (ZONE,), (HOSTNAME, ZONE)]))
        changed["topology_spread"] = tuple(
            spread(
                key,
                draw(st.integers(1, 2)),
                min_domains=draw(st.sampled_from([1, 1, 2, 3])),
                app=draw(st.sampled_from([app, app, *APPS])),
            )
            for key in keys
        )
    return changed


@st.composite
def app_pods(
    draw: st.DrawFn, number: int, among: Sequence[FleetSettings], on: Sequence[Node], mix: Mix
) -> list[Pod]:
    """Replicas of one app."""
    changed = draw(app_specs(draw(st.sampled_from(APPS)), among, mix))
    first = make_pod(f"app{number}", **changed)
    pods = []
    for replica in range(draw(st.integers(1, 4))):
        key = PodKey(
            namespace=first.key.namespace, name=f"app{number}-{replica}", uid=f"{number}-{replica}"
        )
        pod = replace(first, key=key)
        if on and rarely(draw, 2 if mix.crowded else 3):
            node = draw(st.sampled_from(list(on)))
            phases: list[PodPhase] = ["Running", "Running", "Succeeded"]
            pod = replace(pod, node_name=node.name, phase=draw(st.sampled_from(phases)))
            if pod.phase == "Succeeded":
                pod = replace(pod, finished_at=ago(draw(st.sampled_from([30, 700]))))
        elif mix.trouble:
            pod = replace(
                pod, gated=rarely(draw, 12), deleting=rarely(draw, 12), mirror=rarely(draw, 20)
            )
        pods.append(pod)
    return pods
