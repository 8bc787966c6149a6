"""Compares two looks at a cluster and yields the changes as lines of recorded demand."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from reconciler.model.cluster import (
    FARGATE_SCHEDULER,
    DaemonSet,
    Owner,
    Pod,
    PodDisruptionBudget,
    Resources,
)
from reconciler.model.demand import (
    NO_VOLUMES,
    BudgetDemand,
    ClaimDemand,
    ControllerDemand,
    DemandLine,
    FleetFact,
    NodeFact,
    PodDemand,
    PodEnd,
    PodVolumes,
)
from reconciler.model.ids import InstanceId
from reconciler.model.snapshot import CloudState, ClusterState
from reconciler.model.volumes import (
    EBS_DRIVER,
    NO_PROVISIONER,
    ONE_NODE,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from reconciler.planner.placement.filters.node_affinity import zones_of
from reconciler.planner.placement.kinds import INSTANCE_TYPE
from reconciler.planner.placement.volume_places import selectors_of
from reconciler.records.demand.folding import recorded_from
from reconciler.records.demand.line_limits import (
    COUNT_MAX,
    NAME_LENGTH_MAX,
    bounded_owner,
    bounded_seconds,
)

_LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedDemand:
    """What one look at the cluster found."""

    at: datetime | None = None
    """When; None: nothing was observed yet."""
    pods: Mapping[str, Pod] = field(default_factory=dict)
    """Those that need room, by UID."""
    finished: Mapping[str, Pod] = field(default_factory=dict)
    """Those that have ended by themselves and still exist, by UID."""
    yet_to_ask: frozenset[str] = frozenset()
    """The UIDs of those that ask for no room yet: a scheduling gate holds them (Kueue's, say), or a
    scheduler of their own has not refused them."""
    asked_at: Mapping[str, datetime] = field(default_factory=dict)
    """By UID, since when pods ask for room that were `yet_to_ask` at an earlier look."""
    daemon_sets: Mapping[str, DaemonSet] = field(default_factory=dict)
    budgets: Mapping[str, PodDisruptionBudget] = field(default_factory=dict)
    claims: Mapping[str, PersistentVolumeClaim] = field(default_factory=dict)
    """By namespace and name, those of pods' generic ephemeral volumes included."""
    volumes: Mapping[str, PersistentVolume] = field(default_factory=dict)
    storage_classes: Mapping[str, StorageClass] = field(default_factory=dict)
    fleets: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Target and nodes of each fleet, by name."""
    nodes: Mapping[tuple[str, str], Resources] = field(default_factory=dict)
    """What the newest Ready node of each fleet and instance type offers to pods; the fleet is empty
    for nodes of no fleet, and where EC2 was not asked."""


def seen_in(
    cluster: ClusterState,
    cloud: CloudState | None,
    at: datetime,
    fleets: Mapping[str, tuple[int, int]],
    before: ObservedDemand,
) -> ObservedDemand:
    """Return what this state of cluster and cloud shows, after an earlier look."""
    budgets = {f"{b.namespace}/{b.name}": b for b in cluster.budgets if not b.unreadable}
    return ObservedDemand(
        at=at,
        pods={pod.key.uid: pod for pod in cluster.pods if _asks_for_room(pod, before)},
        finished={pod.key.uid: pod for pod in cluster.pods if _has_ended(pod)},
        yet_to_ask=frozenset(pod.key.uid for pod in cluster.pods if _has_yet_to_ask(pod, before)),
        asked_at=_asked_at(cluster.pods, at, before),
        daemon_sets={
            f"{d.namespace}/{d.name}": d for d in cluster.daemon_sets if not d.makes_no_pods
        },
        budgets=budgets,
        claims={f"{c.namespace}/{c.name}": c for c in cluster.claims},
        volumes={volume.name: volume for volume in cluster.volumes},
        storage_classes={
            storage_class.name: storage_class for storage_class in cluster.storage_classes
        },
        fleets=fleets,
        nodes=_nodes(cluster, cloud),
    )


def _asked_at(pods: Iterable[Pod], at: datetime, before: ObservedDemand) -> Mapping[str, datetime]:
    """Return since when pods ask for room and did not at a look before this one."""
    found: dict[str, datetime] = {}
    if not (before.asked_at or before.yet_to_ask):
        return found
    for pod in pods:
        uid = pod.key.uid
        if uid in before.asked_at:
            found[uid] = before.asked_at[uid]
        elif uid in before.yet_to_ask and not _has_yet_to_ask(pod, before):
            found[uid] = min(at, pod.scheduled_at or pod.started_at or at)
    return found


def _nodes(cluster: ClusterState, cloud: CloudState | None) -> Mapping[tuple[str, str], Resources]:
    fleets, instances = (cloud.fleets, cloud.instances) if cloud is not None else ((), ())
    names = {fleet.id: fleet.name for fleet in fleets}
    fleet_of: dict[InstanceId | None, str] = {
        instance.id: names[instance.fleet_id]
        for instance in instances
        if instance.fleet_id in names
    }
    ready = (n for n in cluster.nodes if n.ready and not n.unreadable and n.allocatable)
    return {
        (fleet_of.get(node.instance_id, ""), node.labels[INSTANCE_TYPE]): node.allocatable
        for node in sorted(ready, key=lambda n: (n.created_at or _LONG_AGO, n.name))
        if node.labels.get(INSTANCE_TYPE)
    }


def changes(
    before: ObservedDemand, now: ObservedDemand, at: datetime, keep: timedelta
) -> Iterator[DemandLine]:
    """Yield what was created, changed and ended between two observations.

    The first one of a day yields everything that exists, after a line which says that nothing
    before it counts, so that a day can be read alone. A resized pod is yielded again. Finished pods
    are yielded once, even if no observation saw them run; in the very first one they are all that
    is known about the time before.

    Args:
        before: The previous observation.
        now: This observation.
        at: When this observation was made.
        keep: Older pods are written as created this long ago.
    """
    fresh = before.at is None or before.at.date() != at.date()
    oldest = at - keep
    if fresh:
        yield recorded_from(at)
    known = ObservedDemand() if fresh else before
    yield from _changed_claims(known, now, at)  # before the pods that name them
    yield from _finished(before, now, at, oldest)
    for uid, pod in now.pods.items():
        earlier = None if fresh else before.pods.get(uid)
        # By identity first: most specs are the same object as before, and each is long.
        if earlier is None or (pod.spec is not earlier.spec and pod.spec != earlier.spec):
            asked_at = now.asked_at.get(uid) or pod.created_at or at
            yield _pod_demand(min(max(asked_at, oldest), at), pod, now.claims)
    yield from _ended(before, now, at, oldest)
    yield from _changed_daemon_sets(known, now, at)
    yield from _changed_budgets(known, now, at)
    for (fleet, instance_type), allocatable in sorted(now.nodes.items()):
        if known.nodes.get((fleet, instance_type)) != allocatable:
            yield NodeFact(at=at, fleet=fleet, instance_type=instance_type, allocatable=allocatable)
    for name, (target, joined) in now.fleets.items():
        if known.fleets.get(name) != (target, joined):
            yield FleetFact(at=at, fleet=name, target=target, joined=joined)


def _finished(
    before: ObservedDemand, now: ObservedDemand, at: datetime, oldest: datetime
) -> Iterator[DemandLine]:
    """Yield the pods that were created and ended since the last look, each with its end."""
    known = before.pods.keys() | before.finished.keys()
    for uid, pod in now.finished.items():
        if uid not in known and pod.created_at is not None:
            end = _pod_end(at, uid, pod, oldest)
            if end.ran_seconds is not None and pod.created_at >= oldest:
                asked_at = now.asked_at.get(uid) or pod.created_at
                yield _pod_demand(min(asked_at, at), pod, now.claims)
                yield end


def _ended(
    before: ObservedDemand, now: ObservedDemand, at: datetime, oldest: datetime
) -> Iterator[DemandLine]:
    for uid in sorted(before.pods.keys() - now.pods.keys()):
        yield _pod_end(at, uid, now.finished.get(uid), oldest)
    for uid in sorted(before.finished.keys() - now.finished.keys()):
        end = _pod_end(at, uid, before.finished[uid], oldest)
        if end.ran_seconds is not None:
            yield replace(end, kept_seconds=bounded_seconds((at - end.at).total_seconds()))


def _changed_daemon_sets(
    known: ObservedDemand, now: ObservedDemand, at: datetime
) -> Iterator[DemandLine]:
    for name, daemon_set in now.daemon_sets.items():
        if known.daemon_sets.get(name) != daemon_set:
            owner = Owner(kind="DaemonSet", name=daemon_set.name, uid="")
            yield ControllerDemand(
                at=at, controller=owner, namespace=daemon_set.namespace, spec=daemon_set.spec
            )
    for name in sorted(known.daemon_sets.keys() - now.daemon_sets.keys()):
        gone = known.daemon_sets[name]
        owner = Owner(kind="DaemonSet", name=gone.name, uid="")
        yield ControllerDemand(at=at, controller=owner, namespace=gone.namespace, deleted=True)


def _changed_budgets(
    known: ObservedDemand, now: ObservedDemand, at: datetime
) -> Iterator[DemandLine]:
    for name, pod_disruption_budget in now.budgets.items():
        earlier = known.budgets.get(name)
        if earlier is None or _rule_of(earlier) != _rule_of(pod_disruption_budget):
            yield _budget_demand(at, pod_disruption_budget)
    for name in sorted(known.budgets.keys() - now.budgets.keys()):
        gone = known.budgets[name]
        yield BudgetDemand(
            at=at, id=gone.name, namespace=gone.namespace, min_available=0, deleted=True
        )


def _changed_claims(
    known: ObservedDemand, now: ObservedDemand, at: datetime
) -> Iterator[DemandLine]:
    """Yield claims that came or went, without those that come and go with a pod.

    Of what exists when a recording begins the volume's zone is recorded. A volume that was made
    later has the zone that kube-scheduler chose, which a replay chooses itself.
    """
    new = [key for key, claim in now.claims.items() if key not in known.claims and not claim.of_pod]
    named_at = _named_at(known, now, at) if new and known.at is not None else {}
    for key in new:
        when = named_at.get(key, at)
        yield _claim_demand(when, now.claims[key], now, existed=known.at is None)
    for key in sorted(known.claims.keys() - now.claims.keys()):
        gone = known.claims[key]
        if not gone.of_pod:
            yield ClaimDemand(at=at, id=gone.name, namespace=gone.namespace, deleted=True)


def _named_at(known: ObservedDemand, now: ObservedDemand, at: datetime) -> dict[str, datetime]:
    """Return since when the new pods have named their claims: from then on a replay needs them."""
    found: dict[str, datetime] = {}
    for uid, pod in now.pods.items():
        if pod.claims and uid not in known.pods:
            created_at = max(known.at or at, min(pod.created_at or at, at))
            for name in pod.claims:
                key = f"{pod.key.namespace}/{name}"
                found[key] = min(found.get(key, at), created_at)
    return found


def _claim_demand(
    at: datetime, claim: PersistentVolumeClaim, now: ObservedDemand, *, existed: bool
) -> ClaimDemand:
    volume = now.volumes.get(claim.volume_name)
    classes = now.storage_classes
    default = next(
        (storage_class.name for storage_class in classes.values() if storage_class.default), ""
    )
    name = default if claim.storage_class is None else claim.storage_class
    found = classes.get(name)
    driver = found.provisioner if found is not None else EBS_DRIVER
    if volume is not None:
        driver = volume.csi_driver or NO_PROVISIONER
    return ClaimDemand(
        at=at,
        id=claim.name,
        namespace=claim.namespace,
        zone=_zone_of(volume) if volume is not None and existed else "",
        storage_class=name,
        driver=driver[:NAME_LENGTH_MAX] or EBS_DRIVER,
        immediate=found is not None and not found.wait_for_first_consumer,
        access_modes=claim.access_modes or (ONE_NODE,),
    )


def _zone_of(volume: PersistentVolume) -> str:
    """Return the zone from which alone a volume is reached; empty if there are several, or none."""
    zones = {zone for selector in selectors_of(volume) for zone in zones_of(selector)}
    return zones.pop()[:NAME_LENGTH_MAX] if len(zones) == 1 else ""


def _asks_for_room(pod: Pod, before: ObservedDemand) -> bool:
    """Return whether the pod needs room that the planner has to provide."""
    left_out = _needs_no_room(pod) or pod.finished or pod.unreadable
    return bool(pod.key.uid) and not left_out and not _has_yet_to_ask(pod, before)


def _needs_no_room(pod: Pod) -> bool:
    return pod.daemon or pod.mirror or pod.spec.scheduler_name == FARGATE_SCHEDULER


def _has_yet_to_ask(pod: Pod, before: ObservedDemand) -> bool:
    """Return whether the pod needs no room yet: it is gated, or its scheduler has not refused it.

    A pod that was recorded before counts until it ends, although its scheduler may try it again.
    """
    waits = pod.node_name is None and (pod.gated or pod.left_to_scheduler)
    return waits and pod.key.uid not in before.pods


def _has_ended(pod: Pod) -> bool:
    """Return whether the pod needed room of its own, and has finished."""
    return bool(pod.key.uid) and pod.finished and not _needs_no_room(pod)


def _pod_demand(at: datetime, pod: Pod, claims: Mapping[str, PersistentVolumeClaim]) -> PodDemand:
    return PodDemand(
        at=at,
        id=pod.key.uid,
        spec=pod.spec,
        namespace=pod.key.namespace,
        controller=bounded_owner(pod.owner),
        labels=pod.labels,
        annotations=pod.annotations,
        volumes=_volumes(pod, claims) if pod.claims else NO_VOLUMES,
    )


def _volumes(pod: Pod, claims: Mapping[str, PersistentVolumeClaim]) -> PodVolumes:
    """Return what the pod names, its generic ephemeral volumes apart from other claims."""
    own = [name for name in pod.claims if _is_ephemeral(name, pod, claims)]
    return PodVolumes(
        claims=tuple(name for name in pod.claims if name and name not in own),
        ephemeral=tuple(name.removeprefix(f"{pod.key.name}-") for name in own),
    )


def _is_ephemeral(name: str, pod: Pod, claims: Mapping[str, PersistentVolumeClaim]) -> bool:
    """Return whether the pod owns the claim, or will: Kubernetes makes it after the pod."""
    persistent_volume_claim = claims.get(f"{pod.key.namespace}/{name}")
    return name.startswith(f"{pod.key.name}-") and (
        persistent_volume_claim is None or persistent_volume_claim.of_pod
    )


def _pod_end(at: datetime, uid: str, finished: Pod | None, oldest: datetime) -> PodEnd:
    """Return the end of a pod: by itself if it was seen finished; else somebody deleted it.

    A kubelet's clock may be wrong, so that the end is not before the pod's creation. How long it
    ran counts from its line on: a pod that ran for days before the recording, or by a wrong clock
    for years, would make a replay as long.
    """
    if finished is None or finished.started_at is None or finished.finished_at is None:
        return PodEnd(at=at, id=uid)
    begin = min(max(finished.created_at or oldest, oldest), at)
    ended_at = max(begin, min(finished.finished_at, at))
    within = begin < finished.finished_at < at
    longest = ((ended_at if within else at) - begin).total_seconds()
    ran = min((finished.finished_at - finished.started_at).total_seconds(), longest)
    return PodEnd(at=ended_at, id=uid, ran_seconds=bounded_seconds(ran))


def _rule_of(budget: PodDisruptionBudget) -> tuple[object, int]:
    return budget.selector, budget.desired_healthy


def _budget_demand(at: datetime, budget: PodDisruptionBudget) -> BudgetDemand:
    """Return a budget with the API server's own count of the pods that must stay."""
    return BudgetDemand(
        at=at,
        id=budget.name,
        namespace=budget.namespace,
        selector=budget.selector,
        min_available=min(budget.desired_healthy, COUNT_MAX),
    )
