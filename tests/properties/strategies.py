"""Random clusters: fleets, nodes, bound and waiting pods, and what EC2 says of them."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from reconciler.model.actions import DO_NOT_DISRUPT, UNNEEDED_SINCE
from reconciler.model.cluster import Node, Pod, Taint
from reconciler.model.fleet import Fleet
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import NodeName
from reconciler.model.volumes import CsiNode, PersistentVolume, PersistentVolumeClaim, StorageClass
from reconciler.planner.settings import FleetSettings
from tests.builders import (
    AWAY,
    HOME,
    ago,
    capacity_error,
    make_cloud,
    make_daemon_set,
    make_fleet,
    make_fleet_settings,
    make_instance,
    make_node,
    make_settings,
    make_snapshot,
    requiring,
)
from tests.properties.apps import app_pods
from tests.properties.case import Case
from tests.properties.mix import EVERYTHING, SIZES, TAINT, ZONES, Mix, rarely

PROTECTIONS = (
    DO_NOT_DISRUPT,
    "cluster-autoscaler.kubernetes.io/scale-down-disabled",
    "karpenter.sh/do-not-disrupt",
)
OPENING = Taint(key="node.kubernetes.io/not-ready", effect="NoSchedule")


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
                changed["launch_errors"] = (capacity_error(draw(st.integers(1, 900))),)
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
                volume_bound=not (bound and rarely(draw, 8)),
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
