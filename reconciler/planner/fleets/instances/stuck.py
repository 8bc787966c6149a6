"""Instances that never became usable nodes, and what three in a row say about their fleet.

Such an instance has no node, or one that never took a pod, `instance_init_time` after its start; or
it ended by itself before it was a node.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from reconciler.model.cluster import Node, Pod
from reconciler.model.fleet import Instance
from reconciler.model.ids import FleetKey, InstanceId, NodeName
from reconciler.model.saved_state import SavedFleetState
from reconciler.model.snapshot import Snapshot
from reconciler.model.text import cut
from reconciler.planner.clocks import earliest_now
from reconciler.planner.cool_off import cool_off
from reconciler.planner.demand import FLEET
from reconciler.planner.fleets.live_fleet import fleet_keys_by_instance
from reconciler.planner.nodes.duplicate_nodes import find_duplicate_nodes, names_only
from reconciler.planner.nodes.starting import never_took_pods, started_at, takes_pods
from reconciler.planner.settings import PlannerSettings

IN_A_ROW = 3
"""After this many stuck instances in a row the fleet is unavailable (docs/failures.md)."""
WHY_MAX = 160
ENDED_WITHIN = timedelta(hours=1)
"""How long ago an instance that ended by itself may have been launched: EC2 shows ended ones for
about an hour, and does not say when they ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StuckInstance:
    """An instance that should have become a node that takes pods long ago."""

    key: FleetKey
    instance: Instance
    since: datetime
    """When it began to count as stuck."""
    node: Node | None = None
    """Its node, which never took a pod; None if it has none."""

    @property
    def why(self) -> str:
        """Return in words what is the matter with it."""
        instance, node = self.instance, self.node
        if instance.ended_by_itself:
            return f"{instance.id} ended before it was a node ({instance.ended_because})"
        if node is None:
            return f"{instance.id} has no node"
        if not node.ready:
            return f"node {node.name} was never Ready"
        return f"node {node.name} is Ready and keeps a start-up taint"


class DueMember(NamedTuple):
    """A member of a fleet that should be a node by now."""

    key: FleetKey
    instance: Instance
    since: datetime
    """When its `instance_init_time` ended."""
    node: Node | None
    """Its node; None if it has none."""


class NodesByInstance:
    """Which node an instance became, as far as that can be known.

    A kubelet without a cloud provider registers no providerID, but usually the private name. An
    unreadable node without a providerID, or a Ready one of a fleet with a name of no instance,
    could be any instance: nothing can be known while there is one. A machine may also be Ready
    under the node of its predecessor (`names_taken_over`).
    """

    def __init__(self, every: Sequence[Node], instances: Sequence[Instance]) -> None:
        aliases = names_only(find_duplicate_nodes(every))
        nodes = [node for node in every if node.name not in aliases]
        anonymous = [node for node in nodes if node.instance_id is None]
        at_work = [node for node in anonymous if node.ready and FLEET in node.labels]
        names = names_of(instances) if at_work else frozenset()
        self.certain = not any(node.unreadable for node in anonymous) and all(
            node.name in names for node in at_work
        )
        self._by_id = {node.instance_id: node for node in nodes if node.instance_id is not None}
        taken_over = names_taken_over(nodes, instances)
        reused = (node for node in nodes if node.name in taken_over)
        self._by_name = {str(node.name): node for node in (*anonymous, *reused)}

    def of(self, instance: Instance) -> Node | None:
        """Return its node; None if it has none."""
        known = self._by_id.get(instance.id)
        if known is not None:
            return known
        names = names_of((instance,))
        return next((self._by_name[n] for n in sorted(names) if n in self._by_name), None)


def names_of(instances: Iterable[Instance]) -> frozenset[str]:
    """Return the names that kubelets of these instances may have: private, whole or short."""
    full = [instance.private_dns_name for instance in instances]
    return frozenset({*full, *(name.partition(".")[0] for name in full)} - {""})


def names_taken_over(nodes: Iterable[Node], instances: Sequence[Instance]) -> frozenset[NodeName]:
    """Return Ready nodes that name a gone instance, and have the name of a live one.

    A private address is reused, and a Node's providerID never changes: a new machine may run under
    the node of its predecessor, or the predecessor has only just stopped. Nothing shows which.

    Args:
        nodes: Nodes of the cluster.
        instances: What EC2 shows; it forgets terminated ones after an hour.
    """
    alive = {instance.id for instance in instances if not instance.gone}
    found = [
        n for n in nodes if n.ready and n.instance_id is not None and n.instance_id not in alive
    ]
    names = names_of(each for each in instances if not each.gone) if found else frozenset()
    return frozenset(node.name for node in found if node.name in names)


def find_stuck(
    snapshot: Snapshot, settings: PlannerSettings, at: datetime | None = None
) -> tuple[StuckInstance, ...]:
    """Return members of our fleets that are no usable nodes `instance_init_time` after their start.

    None without a node is stuck while a pod runs on a node that is not listed: the list is
    incomplete, or empty, and the instances behind it are in use.

    Args:
        snapshot: What was observed.
        settings: The sector config, resolved.
        at: The time by which ages count; None for the earliest of the known clocks.
    """
    stuck_instances = _overdue(snapshot, settings, find_due(snapshot, settings, at))
    hole = find_pod_on_missing_node(snapshot) if stuck_instances else None
    return tuple(
        stuck_instance
        for stuck_instance in stuck_instances
        if hole is None or stuck_instance.node is not None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class UnlistedNode:
    """Instances that would be ended as never joined if the list of nodes were complete."""

    pod: Pod
    """A pod that runs on a node that is not listed."""
    instances: tuple[InstanceId, ...]


def find_unjoined(
    snapshot: Snapshot,
    settings: PlannerSettings,
    due: Sequence[DueMember],
    orphans: Sequence[InstanceId],
) -> tuple[tuple[StuckInstance, ...], UnlistedNode | None]:
    """Return what is stuck, or what is kept by a pod on a node that is not listed.

    Args:
        snapshot: What was observed.
        settings: The sector config, resolved.
        due: What `find_due` returns.
        orphans: Instances without a node whose fleet is gone, which the pod would keep too.
    """
    stuck_instances = _overdue(snapshot, settings, due)
    pod = find_pod_on_missing_node(snapshot) if stuck_instances or orphans else None
    if pod is None:
        return stuck_instances, None
    kept = {
        *orphans,
        *(
            stuck_instance.instance.id
            for stuck_instance in stuck_instances
            if stuck_instance.node is None
        ),
    }
    with_nodes = tuple(
        stuck_instance for stuck_instance in stuck_instances if stuck_instance.node is not None
    )
    return with_nodes, UnlistedNode(pod=pod, instances=tuple(sorted(kept))) if kept else None


def _overdue(
    snapshot: Snapshot, settings: PlannerSettings, due: Sequence[DueMember]
) -> tuple[StuckInstance, ...]:
    """Return the same as `find_stuck`, regardless of pods on nodes that are not listed."""
    stuck_instances = [
        StuckInstance(key=due_member.key, instance=due_member.instance, since=due_member.since)
        for due_member in due
        if due_member.node is None
    ]
    stuck_instances += _never_took_pods(snapshot, settings, due)
    return tuple(sorted(stuck_instances, key=lambda s: (s.since, s.instance.id)))


def _never_took_pods(
    snapshot: Snapshot,
    settings: PlannerSettings,
    due: Iterable[DueMember],
) -> Iterator[StuckInstance]:
    """Yield the instances whose node never took a pod, `instance_init_time` after its start.

    The node counts from its own start: kubelet registers it again after somebody has deleted it.
    That is as soon as it no longer counts as joining (`is_joining`): between the two it would be a
    node that joined, and others would be bought beside it.
    """
    wait = timedelta(seconds=settings.instance_init_seconds)
    stuck_instances: dict[NodeName, StuckInstance] = {}
    for key, instance, _, node in due:
        if node is None or takes_pods(node, settings):
            continue
        started = started_at(node, instance)
        own = node.instance_id == instance.id and not (node.unreadable or node.deleting)
        if own and started and started + wait <= snapshot.at:
            stuck_instances[node.name] = StuckInstance(
                key=key, instance=instance, since=started + wait, node=node
            )
    if not stuck_instances:
        return
    pods: dict[NodeName, list[Pod]] = {}
    for pod in snapshot.cluster.pods:
        if pod.node_name in stuck_instances:
            pods.setdefault(pod.node_name, []).append(pod)
    for name, stuck_instance in stuck_instances.items():
        assert stuck_instance.node is not None
        if never_took_pods(
            stuck_instance.node, stuck_instance.instance, pods.get(name, ()), settings
        ):
            yield stuck_instance


def find_ended(snapshot: Snapshot, settings: PlannerSettings) -> tuple[StuckInstance, ...]:
    """Return members that ended by themselves within the last hour, most likely before any node.

    EC2 says why each instance ended (`Instance.ended_because`): neither those that anybody or EC2
    took away count, nor those with a node, nor those that may have been nodes for long.
    """
    cloud = snapshot.cloud
    if cloud is None or not cloud.instances_known:
        return ()
    ended = [instance for instance in cloud.instances if instance.ended_by_itself]
    if not ended:
        return ()
    now, keys = earliest_now(snapshot), fleet_keys_by_instance(cloud, settings)
    nodes = {node.instance_id for node in snapshot.cluster.nodes}
    return tuple(
        StuckInstance(key=keys[instance.id], instance=instance, since=instance.launched_at)
        for instance in ended
        if instance.id in keys
        and instance.id not in nodes
        and instance.launched_at is not None
        and now - instance.launched_at < ENDED_WITHIN
    )


def find_at_work(due: Iterable[DueMember]) -> Mapping[FleetKey, frozenset[NodeName]]:
    """Return by fleet the Ready nodes under which members have most likely been at work for long.

    These members are past `instance_init_time`, and will never have a node of their own: each runs
    under that of its predecessor (`names_taken_over`).

    Args:
        due: What `find_due` returns.
    """
    found: dict[FleetKey, set[NodeName]] = {}
    for key, instance, _, node in due:
        if node is not None and node.instance_id != instance.id and node.instance_id is not None:
            found.setdefault(key, set()).add(node.name)
    return {key: frozenset(names) for key, names in found.items()}


def find_due(
    snapshot: Snapshot, settings: PlannerSettings, at: datetime | None = None
) -> list[DueMember]:
    """Return the members that should be nodes by now.

    Empty if instances are unknown, for those whose launch time is unknown, and while a node without
    a providerID could be the instance.

    Args:
        snapshot: What was observed.
        settings: The sector config, resolved.
        at: The time by which ages count; None for the earliest of the known clocks.
    """
    now, cloud = earliest_now(snapshot) if at is None else at, snapshot.cloud
    if cloud is None or not cloud.instances_known:
        return []
    nodes = NodesByInstance(snapshot.cluster.nodes, cloud.instances)
    if not nodes.certain:
        return []
    due_members: list[DueMember] = []
    keys = fleet_keys_by_instance(cloud, settings)
    wait = timedelta(seconds=settings.instance_init_seconds)
    latest = max(now, snapshot.at)
    for instance in cloud.instances:
        launched, key = instance.launched_at, keys.get(instance.id)
        if key is not None and launched is not None and launched <= latest and instance.counts:
            since = launched + wait
            node = nodes.of(instance) if since <= latest else None
            if since <= now or node is not None:
                due_members.append(DueMember(key, instance, since, node))
    return due_members


def find_pod_on_missing_node(snapshot: Snapshot) -> Pod | None:
    """Return a pod that runs on a node missing from the list of nodes, the first by name.

    Only a pod that a kubelet has taken proves a node: anybody may write a node's name into a pod. A
    pod that is being deleted may be left from a node that is gone for long.
    """
    listed = {node.name for node in snapshot.cluster.nodes}
    found = (
        pod
        for pod in snapshot.cluster.pods
        if pod.node_name is not None
        and pod.node_name not in listed
        and (pod.phase == "Running" or pod.started_at is not None)
        and not (pod.finished or pod.deleting)
    )
    return min(found, key=lambda pod: pod.key, default=None)


def with_stuck(
    saved: SavedFleetState,
    failed: Sequence[StuckInstance],
    joined: datetime | None,
    at: datetime,
) -> SavedFleetState:
    """Return the saved state of one fleet: each instance counts once.

    The row ends when the last of them takes pods after all, or one that was launched later; a
    cool-off that was for nothing else ends with it.

    Those that fail during the cool-off count when it is over: it need not be saved in each cycle
    that EC2 goes on to launch them.

    Args:
        saved: What was known before.
        failed: Its instances that never became usable nodes.
        joined: The latest launch among its instances that joined.
        at: The time of the plan.
    """
    counted, row = saved.last_stuck_launched_at, saved.stuck_in_a_row
    if counted is not None and joined is not None and joined >= counted:
        if row >= IN_A_ROW and not saved.reason:
            saved = replace(saved, unavailable_until=None)
        row = 0
    floor = max((moment for moment in (counted, joined) if moment is not None), default=None)
    new = [
        (launched_at, stuck_instance.why)
        for stuck_instance in failed
        if (launched_at := stuck_instance.instance.launched_at)
        and (floor is None or launched_at > floor)
    ]
    until = saved.unavailable_until
    if row >= IN_A_ROW and until is not None and until > at:
        return saved
    row += len(new)
    saved = replace(saved, stuck_in_a_row=row, stuck_because=saved.stuck_because if row else "")
    if new:
        launched_at, why = max(new)
        saved = replace(saved, last_stuck_launched_at=launched_at, stuck_because=cut(why, WHY_MAX))
    if not new or row < IN_A_ROW:
        return saved
    failures = saved.failures + 1
    return replace(saved, failures=failures, unavailable_until=at + cool_off(failures))
