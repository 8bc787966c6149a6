"""Random clusters: fleets, nodes, bound and waiting pods, and what EC2 says of them.

Apps stand for Deployments: replicas of one spec, some bound, some waiting. Names are short and
zones few, so that constraints meet each other often.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from reconciler.model.actions import DO_NOT_DISRUPT, UNNEEDED_SINCE
from reconciler.model.cluster import (
    CsiNode,
    HostPort,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodPhase,
    PodPreference,
    Preference,
    StorageClass,
    Taint,
    Toleration,
)
from reconciler.model.fleet import Fleet
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import NodeName, PodKey
from reconciler.model.selectors import NodeSelectorTerm, Requirement
from reconciler.model.snapshot import Snapshot
from reconciler.planner.settings import FleetSettings, PlannerSettings
from tests.builders import (
    AWAY,
    HOME,
    HOSTNAME,
    ZONE,
    ago,
    capacity_error,
    make_cloud,
    make_daemon_set,
    make_fleet,
    make_fleet_settings,
    make_instance,
    make_node,
    make_pod,
    make_settings,
    make_snapshot,
    near,
    requiring,
    spread,
)

ZONES = ("us-west-2a", "us-west-2b")
APPS = ("a", "b", "c")
PROTECTIONS = (
    DO_NOT_DISRUPT,
    "cluster-autoscaler.kubernetes.io/scale-down-disabled",
    "karpenter.sh/do-not-disrupt",
)
SIZES = {
    "small": {"cpu": 2, "memory": "8Gi", "pods": 5, "price": "0.10"},
    "medium": {"cpu": 4, "memory": "16Gi", "pods": 10, "price": "0.19"},
    "large": {"cpu": 8, "memory": "64Gi", "pods": 20, "price": "0.45"},
}
TAINT = Taint(key="dedicated", value="x", effect="NoSchedule")
OPENING = Taint(key="node.kubernetes.io/not-ready", effect="NoSchedule")
TOLERATION = Toleration(key="dedicated", operator="Equal", value="x", effect="NoSchedule")


class Case:
    """What a plan is made from; shown without the fields that have their defaults."""

    def __init__(self, snapshot: Snapshot, settings: PlannerSettings) -> None:
        self.snapshot = snapshot
        self.settings = settings

    def __repr__(self) -> str:
        return f"Case(\n{_shown(self.settings)}\n{_shown(self.snapshot)})"


def _shown(value: Any, indent: int = 0) -> str:
    """A value of the model in few lines."""
    if isinstance(value, tuple) and value and is_dataclass(value[0]):
        pad = "\n" + "  " * (indent + 1)
        return pad + pad.join(_shown(each, indent + 1) for each in value)
    if not is_dataclass(value) or isinstance(value, type):
        return repr(value).removeprefix("FrozenMap")
    kept = [
        f"{f.name}={_shown(getattr(value, f.name), indent)}"
        for f in fields(value)
        if getattr(value, f.name) != f.default and getattr(value, f.name) not in ((), None)
    ]
    return f"{type(value).__name__}({', '.join(kept)})"


@dataclass(frozen=True, kw_only=True)
class Mix:
    """Which features a case may have."""

    between_pods: bool = True
    spread: bool = True
    limits: bool = True
    trouble: bool = True
    """Nodes that are unready, cordoned, draining; fleets that fail."""
    clouds: bool | None = None
    """Whether EC2's answers are given; None: either."""
    idle: bool = False
    """Nodes with idle annotations and protections, fleets with short thresholds."""
    volumes: bool = False
    """Claims on every other pod, and few attachments on every node."""
    balloons: bool = False
    """Pods of low priority on nodes, pods that may or may not preempt them."""
    crowded: bool = False
    """Rules between pods on every other app, most replicas on nodes already."""
    apps_max: int = 5
    nodes_max: int = 5

    @property
    def dense(self) -> bool:
        """One feature at a time: several apps of small pods that share a few nodes."""
        return self.volumes or self.balloons or self.crowded


EVERYTHING = Mix()


def rarely(draw: st.DrawFn, chance: int = 5) -> bool:
    """True once in so many."""
    return draw(st.integers(0, chance - 1)) == chance - 1


@st.composite
def fleets(draw: st.DrawFn, mix: Mix) -> list[FleetSettings]:
    """One to four fleets of one or two sectors."""
    made: dict[str, FleetSettings] = {}
    for _ in range(draw(st.integers(1, 4))):
        size = draw(st.sampled_from(sorted(SIZES)))
        changed: dict[str, Any] = dict(SIZES[size])
        changed["sector"] = "other" if rarely(draw) else "primary"
        if rarely(draw, 3):
            changed["zone"] = draw(st.sampled_from(ZONES))
        else:
            changed["zones"] = ZONES
        if rarely(draw):
            changed["taints"] = (TAINT,)
        if rarely(draw, 4):
            changed |= {"spot": False, "name": f"{changed['sector']}-{size}-od", "price": "0.30"}
        if rarely(draw, 3):
            changed["over_subscription"] = draw(st.sampled_from([0.1, 0.25, 0.5]))
        if mix.limits and rarely(draw, 3):
            changed["max_capacity"] = draw(st.integers(0, 4))
        if mix.limits and rarely(draw, 3):
            most = changed.get("max_capacity", 3)
            changed["min_capacity"] = draw(st.integers(0, min(3, most)))
        if mix.trouble and "zone" not in changed and rarely(draw):
            changed["regions"] = (HOME, AWAY)
        if rarely(draw):
            changed["spot_fallback"] = True
        fleet = make_fleet_settings(size, **changed)
        made[fleet.name] = fleet
    return list(made.values())


@st.composite
def annotations(draw: st.DrawFn) -> FrozenMap[str, str]:
    """Idle for some time, perhaps protected."""
    made: dict[str, str] = {}
    if not rarely(draw, 3):
        since = ago(draw(st.sampled_from([-60, 0, 300, 599, 600, 3000])))
        made[UNNEEDED_SINCE] = since.isoformat().replace("+00:00", "Z")
    if rarely(draw, 6):
        made[draw(st.sampled_from(PROTECTIONS))] = draw(st.sampled_from(["true", "true", "false"]))
    return FrozenMap(made)


@st.composite
def nodes(draw: st.DrawFn, among: Sequence[FleetSettings], mix: Mix) -> list[Node]:
    """Nodes of the fleets, and one or two that are nobody's."""
    made = []
    for number in range(draw(st.integers(2 if mix.dense else 0, mix.nodes_max))):
        fleet = None if rarely(draw, 6) else draw(st.sampled_from(list(among)))
        changed: dict[str, Any] = {}
        if mix.trouble:
            trouble = draw(
                st.sampled_from([None] * 6 + ["cordoned", "unready", "draining", "new", "opening"])
            )
            states: dict[str, dict[str, Any]] = {
                "cordoned": {"unschedulable": True},
                "unready": {"ready": False},
                "new": {"ready": False, "created_at": ago(30)},
                "opening": {"taints": (OPENING,), "created_at": ago(30)},
                "draining": {"draining": fleet is not None},
            }
            changed |= states.get(trouble or "", {})
        zone = fleet.zone if fleet and fleet.zone else draw(st.sampled_from(ZONES))
        if mix.idle:
            changed["annotations"] = draw(annotations())
        made.append(make_node(f"node-{number}", fleet, zone=zone, **changed))
    return made


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


@st.composite
def live_fleets(
    draw: st.DrawFn, among: Sequence[FleetSettings], on: Sequence[Node], mix: Mix
) -> list[Fleet]:
    """What EC2 says of each fleet: near what joined, sometimes owing nodes, sometimes failing."""
    made = []
    for fleet in among:
        for region in fleet.regions:
            joined = sum(n.labels.get("fleet") == fleet.name for n in on) if region == HOME else 0
            changed: dict[str, Any] = {"region": region}
            if mix.trouble and rarely(draw, 8):
                continue
            if mix.trouble and rarely(draw):
                changed["capacity_errors"] = (capacity_error(draw(st.integers(1, 900))),)
            target = max(
                0, joined + draw(st.sampled_from([0, 0, 0, 1, 2, -1 if mix.trouble else 0]))
            )
            made.append(make_fleet(fleet, target, **changed))
    return made


@st.composite
def volumes(draw: st.DrawFn, pods: Sequence[Pod], chance: int) -> tuple[list[Pod], dict[str, Any]]:
    """Claims for some pods: bound in a zone, or to be bound where the pod goes."""
    changed: list[Pod] = []
    claims: list[PersistentVolumeClaim] = []
    made: list[PersistentVolume] = []
    for pod in pods:
        if not rarely(draw, chance):
            changed.append(pod)
            continue
        namespace = pod.key.namespace
        earlier = [c for c in claims if c.namespace == namespace]
        if earlier and rarely(draw, 3):
            changed.append(replace(pod, claims=(draw(st.sampled_from(earlier)).name,)))
            continue
        name = f"claim-{pod.key.name}"
        bound = draw(st.booleans())
        if bound:
            zone = draw(st.sampled_from(ZONES))
            made.append(
                PersistentVolume(
                    name=f"pv-{name}",
                    node_affinity=requiring("topology.ebs.csi.aws.com/zone", "In", zone),
                    csi_driver="ebs.csi.aws.com",
                )
            )
        claims.append(
            PersistentVolumeClaim(
                namespace=namespace,
                name=name,
                volume_name=f"pv-{name}" if bound else "",
                storage_class="gp3",
                access_modes=("ReadWriteOnce",),
            )
        )
        changed.append(replace(pod, claims=(name,)))
    gp3 = StorageClass(name="gp3", provisioner="ebs.csi.aws.com", wait_for_first_consumer=True)
    return changed, {
        "claims": tuple(claims),
        "volumes": tuple(made),
        "storage_classes": (gp3,),
    }


@st.composite
def cases(draw: st.DrawFn, mix: Mix = EVERYTHING) -> Case:
    """A whole snapshot with its settings."""
    among = draw(fleets(mix))
    on = draw(nodes(among, mix))
    pods = [
        pod
        for number in range(draw(st.integers(2 if mix.dense else 0, mix.apps_max)))
        for pod in draw(app_pods(number, among, on, mix))
    ]
    pods, storage = draw(volumes(pods, 2 if mix.volumes else 8))
    cloud = None
    if mix.clouds or (mix.clouds is None and draw(st.booleans())):
        live = draw(live_fleets(among, on, mix))
        by_name = {f.name: f for f in live if f.region == HOME}
        members = [n for n in on if n.labels.get("fleet") in by_name]
        instances = [make_instance(n, by_name[n.labels["fleet"]]) for n in members]
        cloud = make_cloud(*live, instances=instances)
    if rarely(draw, 4):
        storage["daemon_sets"] = (make_daemon_set(cpu="200m", memory="300Mi"),)
    if mix.volumes or rarely(draw, 4):
        limit = draw(st.integers(1, 3))
        storage["csi_nodes"] = tuple(
            CsiNode(name=NodeName(n.name), limits=FrozenMap({"ebs.csi.aws.com": limit})) for n in on
        )
    changed: dict[str, Any] = {}
    if mix.limits and rarely(draw, 8):
        changed["usd_per_hour_max"] = Decimal(draw(st.sampled_from(["0.30", "0.75"])))
    settings = make_settings(
        *among,
        regions=(HOME, AWAY),
        default_sector=draw(st.sampled_from([among[0].sector, among[0].sector, None])),
        **changed,
    )
    return Case(snapshot=make_snapshot(*on, *pods, cloud=cloud, **storage), settings=settings)
