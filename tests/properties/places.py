"""Where pods can be: nodes there are, capacity on its way, nodes a plan would buy.

Written from the contract (docs/scale-up.md), without the planner's own code for it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import product

from reconciler.model.cluster import Node, Pod, PodSpec, Taint
from reconciler.model.fleet import Fleet, Instance
from reconciler.model.ids import InstanceId, NodeName, Region
from reconciler.model.snapshot import Snapshot
from reconciler.planner.settings import FleetSettings, PlannerSettings
from tests.builders import is_tainted

ZONE = "topology.kubernetes.io/zone"
EBS_ZONE = "topology.ebs.csi.aws.com/zone"
REGION = "topology.kubernetes.io/region"
GONE = frozenset({"shutting-down", "terminated", "stopping", "stopped"})


@dataclass(slots=True, eq=False)
class Place:
    """A node, real or promised, and the pods on it."""

    name: str
    variants: tuple[Mapping[str, str], ...]
    """Label sets that it may turn out with."""
    taints: tuple[Taint, ...]
    usable: bool
    """Takes new pods at all: Ready, not cordoned, not leaving."""
    offer: Mapping[str, int]
    imagined: bool = False
    over_subscription: float = 0.0
    volume_limits: Mapping[str, int | None] = field(default_factory=dict)
    pods: list[Pod] = field(default_factory=list)

    def domain(self, key: str) -> str | tuple[str, ...] | None:
        """The topology domain; several where EC2 chooses; None without the label."""
        if key == "kubernetes.io/hostname" and self.imagined:
            return self.name
        values = sorted({v[key] for v in self.variants if key in v})
        if not values:
            return None
        return values[0] if len(values) == 1 else tuple(values)


def with_ebs_zone(labels: Mapping[str, str]) -> dict[str, str]:
    """`topology.ebs.csi.aws.com/zone` is the zone, also where the driver has not said so yet."""
    zone = labels.get(ZONE) or labels.get(EBS_ZONE)
    return {**labels, **({ZONE: zone, EBS_ZONE: zone} if zone else {})}


@dataclass(slots=True, eq=False)
class FleetFacts:
    """One fleet in one region as the snapshot shows it."""

    settings: FleetSettings
    region: Region
    live: Fleet | None
    missing: bool
    nodes: list[Node]
    current: int
    joined: int
    launched: int
    """Instances that live, whether they have joined or not."""
    min: int
    max: int | None

    @property
    def key(self) -> tuple[str, Region]:
        """Name and region."""
        return self.settings.name, self.region

    @property
    def held(self) -> int:
        """Nodes that it has or is owed."""
        return max(self.current, self.joined)

    @property
    def draining(self) -> int:
        """Nodes with our taint."""
        return sum(map(is_tainted, self.nodes))


def fleet_facts(snapshot: Snapshot, settings: PlannerSettings) -> list[FleetFacts]:
    """Every fleet and region of the config whose region answered."""
    cloud = snapshot.cloud
    facts = []
    for fleet in settings.fleets():
        for region in fleet.regions:
            if cloud and region != settings.regions[0] and region not in cloud.regions:
                continue
            live = next(
                (
                    f
                    for f in (cloud.fleets if cloud else ())
                    if (f.name, f.region) == (fleet.name, region)
                ),
                None,
            )
            nodes = [n for n in snapshot.cluster.nodes if _belongs(n, fleet, region, snapshot)]
            joined = [n for n in nodes if not _joining(n, snapshot, settings)]
            limits = [fleet.max_capacity, live.max_size if live else None]
            facts.append(
                FleetFacts(
                    settings=fleet,
                    region=region,
                    live=live,
                    missing=cloud is not None and live is None,
                    nodes=nodes,
                    current=(live.target_capacity if live else 0) if cloud else len(nodes),
                    joined=len(joined),
                    launched=_launched(live, snapshot),
                    min=fleet.min_capacity if region == settings.regions[0] else 0,
                    max=min((x for x in limits if x is not None), default=None),
                )
            )
    return facts


def _launched(live: Fleet | None, snapshot: Snapshot) -> int:
    if snapshot.cloud is None or live is None:
        return 0
    place = (live.region, live.id)
    return sum((i.region, i.fleet_id) == place and i.counts for i in snapshot.cloud.instances)


def _belongs(node: Node, fleet: FleetSettings, region: Region, snapshot: Snapshot) -> bool:
    if node.labels.get(REGION, region) != region or is_gone(node, snapshot):
        return False
    return node.labels.get("fleet") == fleet.name


def _joining(node: Node, snapshot: Snapshot, settings: PlannerSettings) -> bool:
    opening = {"node.kubernetes.io/not-ready", "ebs.csi.aws.com/agent-not-ready"}
    if node.created_at is None or (node.ready and not opening & {t.key for t in node.taints}):
        return False
    return snapshot.at - node.created_at < timedelta(seconds=settings.instance_init_seconds)


def instances_by_id(snapshot: Snapshot) -> dict[InstanceId, Instance]:
    """EC2's instances."""
    return {i.id: i for i in snapshot.cloud.instances} if snapshot.cloud else {}


def is_gone(node: Node, snapshot: Snapshot) -> bool:
    """Whether the node's instance is on its way out."""
    instance = instances_by_id(snapshot).get(node.instance_id or InstanceId(""))
    return instance is not None and instance.state in GONE


def existing_places(snapshot: Snapshot) -> dict[NodeName, Place]:
    """The cluster's nodes with the pods that hold something on them."""
    limits = {csi.name: csi.limits for csi in snapshot.cluster.csi_nodes}
    places = {
        node.name: Place(
            name=node.name,
            variants=(with_ebs_zone(node.labels),),
            taints=node.taints,
            usable=node.ready
            and not (node.unschedulable or node.unreadable or node.deleting)
            and not is_gone(node, snapshot),
            offer=node.allocatable,
            volume_limits=limits.get(node.name, {}),
        )
        for node in snapshot.cluster.nodes
    }
    for pod in snapshot.cluster.pods:
        if pod.node_name in places and pod.phase not in {"Succeeded", "Failed"}:
            places[pod.node_name].pods.append(pod)
    return places


def imagined_place(
    facts: FleetFacts, name: str, snapshot: Snapshot, settings: PlannerSettings, *, bought: bool
) -> Place:
    """A node that the fleet brings, whatever EC2 chooses."""
    variants = new_node_labels(facts)
    daemons = [
        d.spec
        for d in snapshot.cluster.daemon_sets
        if _lands(d.spec, variants, facts.settings.taints)
    ]
    limits: dict[str, int | None] = {}
    for csi in snapshot.cluster.csi_nodes:
        if csi.name in {n.name for n in facts.nodes}:
            for driver, limit in csi.limits.items():
                known = limits.get(driver)
                if limit is not None:
                    limits[driver] = limit if known is None else min(known, limit)
    return Place(
        name=name,
        variants=variants,
        taints=facts.settings.taints,
        usable=True,
        offer=new_node_offer(facts, daemons, settings),
        imagined=True,
        over_subscription=facts.settings.over_subscription if bought else 0.0,
        volume_limits=limits,
    )


def new_node_labels(facts: FleetFacts) -> tuple[Mapping[str, str], ...]:
    """Labels per zone and instance type."""
    fleet = facts.settings
    zones = (fleet.zone,) if fleet.zone else tuple(z for z in fleet.zones if facts.region in z)
    return tuple(
        with_ebs_zone(
            {
                **fleet.labels,
                ZONE: zone,
                REGION: facts.region,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": option.arch,
                "node.kubernetes.io/instance-type": option.instance_type,
            }
        )
        for zone, option in product(
            zones or (f"{facts.region}?1", f"{facts.region}?2"), fleet.options
        )
    )


def _lands(
    spec: PodSpec, variants: tuple[Mapping[str, str], ...], taints: tuple[Taint, ...]
) -> bool:
    if any(
        t.effect != "PreferNoSchedule" and not any(x.tolerates(t) for x in spec.tolerations)
        for t in taints
    ):
        return False
    return all(v.get(k) == w for k, w in spec.node_selector.items() for v in variants)


def new_node_offer(
    facts: FleetFacts, daemons: list[PodSpec], settings: PlannerSettings
) -> dict[str, int]:
    """The first that is known of: the config's word, learned from nodes, the least option."""
    fleet = facts.settings
    if fleet.allocatable is not None:
        return dict(fleet.allocatable)
    ready = [n.allocatable for n in facts.nodes if n.ready and not n.unreadable and n.allocatable]
    daemon_totals: dict[str, int] = {}
    for spec in daemons:
        for name, amount in spec.requests.items():
            daemon_totals[name] = daemon_totals.get(name, 0) + amount
    taken = dict(daemon_totals)
    sources = ready
    if not ready:
        sources = [o.resources for o in fleet.options]
        for name, amount in settings.reserve.amounts.items():
            taken[name] = max(amount, taken.get(name, 0))
    offered = {
        name: min(s[name] for s in sources)
        for name in sources[0]
        if all(name in s for s in sources)
    }
    if not ready and fleet.ephemeral_storage_bytes:
        offered["ephemeral-storage"] = fleet.ephemeral_storage_bytes
    return {name: max(0, amount - taken.get(name, 0)) for name, amount in offered.items()}
