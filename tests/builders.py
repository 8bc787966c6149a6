"""Values of the model with everything filled in that a test does not care about.

Amounts are Kubernetes quantities (`"500m"`, `"2Gi"`); ages are seconds before `NOW`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from reconciler.model.actions import DRAINING_TAINT
from reconciler.model.binding import IDENTITY_NAMESPACE, KeptProof
from reconciler.model.cluster import (
    DaemonSet,
    Namespace,
    Node,
    Owner,
    Pod,
    PodAffinityTerm,
    PodSpec,
    Resources,
    Taint,
    TopologySpreadConstraint,
)
from reconciler.model.fleet import Fleet, FleetEvent, Instance, InstanceOption
from reconciler.model.frozen import FrozenMap, Labels
from reconciler.model.ids import FleetId, InstanceId, NodeName, PodKey, Region
from reconciler.model.quantity import resource_amount
from reconciler.model.selectors import (
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
    Operator,
    Requirement,
)
from reconciler.model.snapshot import CloudState, ClusterState, Snapshot
from reconciler.planner.disruption_settings import ScaleInSettings
from reconciler.planner.settings import FleetSettings, PlannerSettings, SectorSettings

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
"""A Saturday noon."""
HOME = Region("us-west-2")
AWAY = Region("us-east-1")
ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"

_SPEC_FIELDS = frozenset(f.name for f in fields(PodSpec))
DRAINING = Taint(key=DRAINING_TAINT, value="scale-in", effect="NoSchedule")


def is_tainted(node: Node) -> bool:
    """Whether it carries our taint, whoever put it there and why."""
    return any(taint.key == DRAINING_TAINT for taint in node.taints)


def ago(seconds: float) -> datetime:
    """A moment before `NOW`."""
    return NOW - timedelta(seconds=seconds)


def amounts(**quantities: str | int) -> Resources:
    """`amounts(cpu="2", memory="4Gi", pods=10)`; `__` in a name stands for `.`, `_` for `-`."""
    return amounts_of({k.replace("__", ".").replace("_", "-"): v for k, v in quantities.items()})


def amounts_of(quantities: Mapping[str, str | int]) -> Resources:
    """Resources by their real names."""
    return FrozenMap((k, resource_amount(k, str(v))) for k, v in quantities.items())


def labelled(**labels: str) -> Labels:
    """Labels from keywords."""
    return FrozenMap(labels)


def selecting(**labels: str) -> LabelSelector:
    """A selector for pods with these labels."""
    return LabelSelector(match_labels=FrozenMap(labels))


def near(topology_key: str, **labels: str) -> PodAffinityTerm:
    """A required (anti-)affinity term: pods with these labels in the same domain."""
    return PodAffinityTerm(topology_key=topology_key, selector=selecting(**labels))


def spread(
    topology_key: str, max_skew: int = 1, *, min_domains: int = 1, **labels: str
) -> TopologySpreadConstraint:
    """A hard topology spread constraint over pods with these labels."""
    return TopologySpreadConstraint(
        topology_key=topology_key,
        max_skew=max_skew,
        hard=True,
        selector=selecting(**labels),
        min_domains=min_domains,
    )


def requiring(key: str, operator: Operator, *values: str) -> NodeSelector:
    """Required node affinity with one expression."""
    requirement = Requirement(key=key, operator=operator, values=values)
    return NodeSelector(terms=(NodeSelectorTerm(expressions=(requirement,)),))


def make_spec(
    cpu: str | int = "500m",
    memory: str | int = "1Gi",
    *,
    requests: Mapping[str, str | int] | None = None,
    sector: str | None = None,
    **changed: Any,
) -> PodSpec:
    """A pod spec; `requests` adds more resources, `sector` a node selector."""
    wanted = {"cpu": cpu, "memory": memory, "pods": 1, **(requests or {})}
    selector = dict(changed.pop("node_selector", {}))
    if sector is not None:
        selector["sector"] = sector
    return PodSpec(
        requests=FrozenMap((k, v) for k, v in sorted(amounts_of(wanted).items()) if v),
        node_selector=FrozenMap(selector),
        **changed,
    )


def make_pod(
    name: str = "pod",
    namespace: str = "ns",
    *,
    node: str | None = None,
    labels: Mapping[str, str] | None = None,
    owner: str | Owner | None = "ReplicaSet",
    **changed: Any,
) -> Pod:
    """A pod, pending unless it has a node; fields of its spec and `make_spec`'s go through."""
    of_spec = _SPEC_FIELDS | {"cpu", "memory", "sector"}
    spec = changed.pop("spec", None) or make_spec(
        **{key: changed.pop(key) for key in list(changed) if key in of_spec}
    )
    kind = Owner(kind=owner, name=f"{name}-owner", uid="") if isinstance(owner, str) else owner
    return Pod(
        key=PodKey(namespace=namespace, name=name, uid=f"uid-{namespace}-{name}"),
        spec=spec,
        labels=FrozenMap(labels or {}),
        annotations=FrozenMap(changed.pop("annotations", {})),
        owner=kind,
        phase=changed.pop("phase", "Running" if node else "Pending"),
        node_name=NodeName(node) if node else None,
        **changed,
    )


def make_pods(count: int, name: str = "pod", **changed: Any) -> tuple[Pod, ...]:
    """Replicas with one spec object."""
    first = make_pod(f"{name}-0", **changed)
    return tuple(
        make_pod(
            f"{name}-{i}",
            spec=first.spec,
            **{
                k: v
                for k, v in changed.items()
                if k not in _SPEC_FIELDS | {"cpu", "memory", "sector"}
            },
        )
        for i in range(count)
    )


def make_option(
    instance_type: str = "m5.xlarge",
    cpu: str | int = 4,
    memory: str | int = "16Gi",
    pods: int = 58,
    *,
    price: str | None = "0.10",
    **more: str | int,
) -> InstanceOption:
    """An instance type that a fleet may launch; `more` names extended resources."""
    return InstanceOption(
        instance_type=instance_type,
        resources=amounts_of(
            {
                "cpu": cpu,
                "memory": memory,
                "pods": pods,
                **{k.replace("__", "/"): v for k, v in more.items()},
            }
        ),
        usd_per_hour=None if price is None else Decimal(price),
    )


def make_fleet_settings(
    size: str = "small",
    sector: str = "primary",
    *,
    cpu: str | int = 4,
    memory: str | int = "16Gi",
    pods: int = 58,
    price: str | None = "0.10",
    name: str | None = None,
    zone: str | None = None,
    labels: Mapping[str, str] | None = None,
    options: Sequence[InstanceOption] | None = None,
    **changed: Any,
) -> FleetSettings:
    """A fleet of one sector with one instance option; nothing is reserved on its nodes."""
    chosen = name or "-".join(part for part in (sector, size, zone) if part)
    found = tuple(options or (make_option(f"{size}.type", cpu, memory, pods, price=price),))
    spot = bool(changed.get("spot", True))
    own = {
        "sector": sector,
        "fleet": chosen,
        "size": size,
        "pool_size": size,
        "kind": "memory",
        "lifecycle": "Ec2Spot" if spot else "OnDemand",
        **({ZONE: zone} if zone else {}),
    }
    prices = [o.usd_per_hour for o in found if o.usd_per_hour is not None]
    return FleetSettings(
        name=chosen,
        sector=sector,
        kind="memory",
        size=size,
        zone=zone,
        regions=changed.pop("regions", (HOME,)),
        labels=FrozenMap({**own, **(labels or {})}),
        options=found,
        usd_per_hour=changed.pop("usd_per_hour", min(prices, default=None)),
        **changed,
    )


def make_settings(*fleets: FleetSettings, **changed: Any) -> PlannerSettings:
    """Settings with one sector per distinct `sector` of the fleets; the first is the default.

    `sectors` maps a sector's name to keyword changes of its SectorSettings.
    """
    per_sector: dict[str, Any] = changed.pop("sectors", {})
    names = list(dict.fromkeys(f.sector for f in fleets))
    sectors = tuple(
        SectorSettings(
            name=name,
            kind="memory",
            fleets=tuple(f for f in fleets if f.sector == name),
            **per_sector.get(name, {}),
        )
        for name in names
    )
    return PlannerSettings(
        cluster="c",
        regions=changed.pop("regions", (HOME,)),
        sectors=sectors,
        default_sector=changed.pop("default_sector", names[0] if names else None),
        **changed,
    )


def make_node(
    name: str = "node",
    fleet: FleetSettings | None = None,
    *,
    zone: str | None = "us-west-2a",
    region: Region = HOME,
    labels: Mapping[str, str] | None = None,
    allocatable: Resources | None = None,
    draining: bool = False,
    **changed: Any,
) -> Node:
    """A Ready node, an hour old; of a fleet it has the fleet's labels, taints and resources."""
    own: dict[str, str] = {"topology.kubernetes.io/region": region, HOSTNAME: name}
    own |= {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    if zone is not None:
        own[ZONE] = zone
    taints: tuple[Taint, ...] = changed.pop("taints", fleet.taints if fleet else ())
    if fleet is not None:
        own["node.kubernetes.io/instance-type"] = fleet.options[0].instance_type
        own |= fleet.labels
    offered = fleet.allocatable or fleet.options[0].resources if fleet else None
    instance = changed.pop("instance_id", InstanceId(f"i-{name}"))
    return Node(
        name=NodeName(name),
        uid=f"uid-{name}",
        provider_id=f"aws:///{zone}/{instance}" if instance else "",
        instance_id=instance,
        labels=FrozenMap({**own, **(labels or {})}),
        allocatable=allocatable or offered or amounts(cpu=4, memory="16Gi", pods=58),
        taints=(*taints, *((DRAINING,) if draining else ())),
        created_at=changed.pop("created_at", ago(3600)),
        ready_changed_at=changed.pop("ready_changed_at", ago(3500)),
        **changed,
    )


def make_fleet(settings: FleetSettings, target: int = 0, **changed: Any) -> Fleet:
    """The live fleet of these settings."""
    return Fleet(
        id=changed.pop("id", FleetId(f"fleet-{settings.name}-{changed.get('region', HOME)}")),
        name=settings.name,
        provider=settings.provider,
        region=changed.pop("region", HOME),
        state=changed.pop("state", "active"),
        target_capacity=target,
        **changed,
    )


def make_instance(node: Node, fleet: Fleet, **changed: Any) -> Instance:
    """The running instance behind a node."""
    if node.instance_id is None:
        raise ValueError(f"{node.name} has no instance")
    return Instance(
        id=node.instance_id,
        region=fleet.region,
        fleet_id=fleet.id,
        state=changed.pop("state", "running"),
        instance_type=node.labels.get("node.kubernetes.io/instance-type", ""),
        zone=node.labels.get(ZONE, ""),
        launched_at=changed.pop("launched_at", node.created_at),
        lifecycle=changed.pop("lifecycle", "spot"),
        **changed,
    )


def make_daemon_set(name: str = "daemon", **changed: Any) -> DaemonSet:
    """A DaemonSet; keywords go to `make_spec`."""
    return DaemonSet(namespace="kube-system", name=name, spec=make_spec(**changed))


def capacity_error(
    seconds_ago: float = 60, code: str = "InsufficientInstanceCapacity"
) -> FleetEvent:
    """An error of a fleet's history."""
    return FleetEvent(at=ago(seconds_ago), code=code)


def make_cloud(*fleets: Fleet, instances: Iterable[Instance] = (), **changed: Any) -> CloudState:
    """EC2's answers; every region of a fleet, and home, answered."""
    return CloudState(
        fleets=fleets,
        instances=tuple(instances),
        regions=changed.pop("regions", frozenset({HOME, *(f.region for f in fleets)})),
        instances_known=changed.pop("instances_known", True),
        **changed,
    )


def make_cloud_of(
    objects: Iterable[Pod | Node], *fleets: Fleet, others: Iterable[Instance] = (), **changed: Any
) -> CloudState:
    """EC2's answers with an instance behind each of these fleets' nodes, or one of `others`."""
    lives = {fleet.name: fleet for fleet in fleets}
    nodes = [o for o in objects if isinstance(o, Node) and o.labels.get("fleet") in lives]
    found = {
        n.instance_id: make_instance(n, lives[n.labels["fleet"]]) for n in nodes if n.instance_id
    }
    found |= {instance.id: instance for instance in others}
    return make_cloud(*fleets, instances=found.values(), **changed)


def make_snapshot(
    *objects: Pod | Node, cloud: CloudState | None = None, at: datetime = NOW, **changed: Any
) -> Snapshot:
    """A snapshot of pods and nodes; keywords but `previous_at` go to ClusterState."""
    return Snapshot(
        at=at,
        previous_at=changed.pop("previous_at", None),
        cluster=ClusterState(
            pods=tuple(o for o in objects if isinstance(o, Pod)),
            nodes=tuple(o for o in objects if isinstance(o, Node)),
            **changed,
        ),
        cloud=cloud,
    )


CLUSTER_UID = "11111111-2222-3333-4444-555555555555"


def kept_proof(*fleets: Fleet, uid: str = CLUSTER_UID, **changed: Any) -> dict[str, Any]:
    """Keywords of ClusterState: nodes of this cluster were instances of these fleets before."""
    names = tuple(fleet.id for fleet in fleets)
    known = KeptProof(cluster_uid=uid, fleets=names, proven_at=changed.pop("at", ago(3600)))
    return {"proof": known, **identity(**changed)}


def identity(uid: str = CLUSTER_UID) -> dict[str, Any]:
    """Keywords of ClusterState: the cluster's identity is known."""
    return {"namespaces": (Namespace(name=IDENTITY_NAMESPACE, uid=uid),)}


def idle(seconds: float = 3600, **changed: Any) -> ScaleInSettings:
    """Scale-in settings; a short word for tests about timers."""
    return ScaleInSettings(idle_threshold_seconds=seconds, **changed)
