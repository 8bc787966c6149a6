"""What a snapshot shows about each notice of the interruption queue: done, or still to do.

A message is deleted only once a snapshot taken after it arrived shows that it was dealt with. Until
then it is kept, and if this process ends it is delivered again.
"""

from collections.abc import Collection
from datetime import datetime, timedelta
from functools import cached_property
from typing import Final

from reconciler.model.binding import Binding
from reconciler.model.cluster import Node
from reconciler.model.counted_pods import counts
from reconciler.model.fleet import FLEET_TAG, Instance
from reconciler.model.ids import InstanceId, NodeName
from reconciler.model.interruption_annotation import (
    FURTHER_MAX,
    REBALANCE_RECOMMENDATION,
    SCHEDULED_CHANGE,
    is_over,
)
from reconciler.model.notices import SPOT_ACTIONS, STAYING, Notice, NoticeOutcome, NoticeResult
from reconciler.model.snapshot import CloudState, Snapshot
from reconciler.planner.fleets.instances.stuck import (
    NodesByInstance,
    find_pod_on_missing_node,
    names_of,
)
from reconciler.planner.fleets.live_fleet import fleet_keys_by_instance
from reconciler.planner.nodes.drain_taints import drain_reasons
from reconciler.planner.nodes.interruptions import (
    carries_withdrawn,
    read_notices,
    withdrawn_changes,
)
from reconciler.planner.settings import PlannerSettings

ANSWERS_AGE_MAX: Final = timedelta(minutes=3)
"""How old an answer about instances may be, with a margin: a group at rest is read at least every
two minutes."""


def notice_outcomes(
    snapshot: Snapshot, settings: PlannerSettings, binding: Binding, ours: Collection[NodeName]
) -> tuple[NoticeOutcome, ...]:
    """Return the outcome of each notice of the snapshot, in its order.

    Args:
        snapshot: What was observed.
        settings: The sector config, resolved.
        binding: Whether cluster and fleets belong together.
        ours: The nodes of the config's fleets.
    """
    if not snapshot.notices:
        return ()
    judge = _Judge(snapshot, settings, binding, ours)
    return tuple(
        NoticeOutcome(notice=notice, result=judge.result_of(notice)) for notice in snapshot.notices
    )


class _Judge:
    """Judges each notice by what one snapshot shows."""

    def __init__(
        self,
        snapshot: Snapshot,
        settings: PlannerSettings,
        binding: Binding,
        ours: Collection[NodeName],
    ) -> None:
        cloud = snapshot.cloud
        self._at, self._rebalance = snapshot.at, settings.drains_for_rebalance
        self._ours = ours
        self._members = fleet_keys_by_instance(cloud, settings) if cloud is not None else {}
        self._names = {
            name for fleet in settings.fleets() for name in (fleet.name, fleet.auto_scaling_group)
        } - {None}
        self._instances = (
            {instance.id: instance for instance in cloud.instances} if cloud is not None else {}
        )
        self._nodes = {node.instance_id: node for node in snapshot.cluster.nodes}
        self._all_known = _knows_all_instances(cloud)
        self._withdrawn = withdrawn_changes(snapshot.notices)
        self._work = _Work(snapshot, binding)

    def result_of(self, notice: Notice) -> NoticeResult:
        """Return what became of a notice; `waiting` while its message must be kept."""
        node, instance = self._nodes.get(notice.instance), self._instances.get(notice.instance)
        if instance is None and _joined_lately(node, self._at):
            return "waiting"  # EC2's answer may be older than the instance
        if instance is None:
            recommended = notice.kind == "rebalance" and node is not None
            result: NoticeResult = _of_unknown(
                notice, self._at, recommended=recommended, all_known=self._all_known
            )
        elif notice.at is None:
            result = "unreadable"
        elif self._all_known and self._is_of_others(node, instance):
            result = "not-ours"
        else:
            ignored = _is_passed_over(notice, instance, rebalance=self._rebalance)
            result = "ignored" if ignored else _of_ours(notice, self._at, instance)
        return self._of_waiting(notice, node, instance) if result == "waiting" else result

    def _is_of_others(self, node: Node | None, instance: Instance) -> bool:
        """Return whether an instance with the cluster's tag is of none of the config's fleets.

        Every node of an EKS cluster carries that tag, whoever launched it. Where it is so new that
        AWS's answer about the fleets may be older, it may be one of ours.
        """
        if instance.id in self._members or (node is not None and node.name in self._ours):
            return False
        if not self._names.isdisjoint((instance.tags.get(FLEET_TAG), instance.fleet_id)):
            return False
        launched_at = instance.launched_at
        is_new = launched_at is not None and self._at - launched_at <= ANSWERS_AGE_MAX
        return not (is_new or _joined_lately(node, self._at))

    def _of_waiting(
        self, notice: Notice, node: Node | None, instance: Instance | None
    ) -> NoticeResult:
        """Return the result of a notice that asks for something: whether it was dealt with."""
        if notice.hook is not None:
            ended = self._work.is_over(notice.instance, instance)
            return "acted" if ended else "waiting"
        if notice.kind == "change-withdrawn":
            carried = node is not None and carries_withdrawn(node, self._withdrawn)
            return "waiting" if carried or instance is None else "acted"
        if _is_withdrawn(notice, self._withdrawn):
            return "no-change"
        return "acted" if _is_acted_on(notice, node, self._at) else "waiting"


def _joined_lately(node: Node | None, at: datetime) -> bool:
    """Return whether there is a node that may be newer than what EC2 last answered."""
    if node is None or node.created_at is None:
        return False
    return at - node.created_at <= ANSWERS_AGE_MAX


def _of_unknown(
    notice: Notice, at: datetime, *, recommended: bool, all_known: bool
) -> NoticeResult:
    """Return the result of a notice for an instance that EC2 does not show.

    Args:
        notice: The notice.
        at: The time of the plan.
        recommended: Whether it is a recommendation for an instance that is a node.
        all_known: Whether EC2 has shown all instances of ours.
    """
    if notice.at is None:
        return "unreadable"
    if all_known:
        return "not-ours"
    # While EC2 does not answer, recommendations for unknown instances must not fill the memory.
    return "expired" if is_over(notice.at, at, recommended=recommended) else "waiting"


class _Work:
    """Decides for instances that a lifecycle hook holds whether anything may still run there."""

    def __init__(self, snapshot: Snapshot, binding: Binding) -> None:
        self._snapshot = snapshot
        self._may_remove = binding.may_remove

    def is_over(self, instance: InstanceId, shown: Instance | None) -> bool:
        """Return whether no counted pod is left on it: completing the hook ends it at once.

        An instance without a listed node may still join, or its node is missing because the list is
        incomplete, an empty first list, or that of another cluster's kubeconfig.

        Args:
            instance: Its id. Two nodes may claim it; pods of both count.
            shown: What EC2 shows about it; None if it is not ours, or while EC2 does not answer.
        """
        claiming = self._claiming.get(instance, [])
        names = names_of(() if shown is None else (shown,))
        if any(name in self._at_work for name in (*claiming, *names)):
            return False
        return bool(claiming) or (shown is not None and self._node_list_is_complete)

    @cached_property
    def _claiming(self) -> dict[InstanceId, list[NodeName]]:
        found: dict[InstanceId, list[NodeName]] = {}
        for node in self._snapshot.cluster.nodes:
            if node.instance_id is not None:
                found.setdefault(node.instance_id, []).append(node.name)
        return found

    @cached_property
    def _at_work(self) -> frozenset[str]:
        """Return the names of nodes that pods name, whether or not the nodes are listed."""
        pods = self._snapshot.cluster.pods
        return frozenset(p.node_name for p in pods if p.node_name is not None and counts(p))

    @cached_property
    def _node_list_is_complete(self) -> bool:
        """Return whether the list of nodes is complete.

        If it is, an instance that no listed node names has no node.
        """
        cluster, cloud = self._snapshot.cluster, self._snapshot.cloud
        if not self._may_remove or cloud is None or cluster.relists < 2:
            return False
        certain = NodesByInstance(cluster.nodes, cloud.instances).certain
        return certain and find_pod_on_missing_node(self._snapshot) is None


def _is_passed_over(notice: Notice, instance: Instance, *, rebalance: bool) -> bool:
    """Return whether nothing is to be done about the notice.

    An example is an action of a group to which the instance does not belong.
    """
    if notice.kind == "lifecycle-action":
        return notice.hook is None or notice.hook.group != instance.fleet_id
    return notice.kind == "rebalance" and not rebalance


def _of_ours(notice: Notice, at: datetime, instance: Instance) -> NoticeResult:
    assert notice.at is not None, "unreadable notices name no instance"
    if instance.gone:
        return "instance-gone"
    if notice.kind == "state-change" and notice.action in STAYING:
        return "no-change"
    if notice.hook is not None and instance.leaving:
        return "waiting"  # for as long as the hook holds it
    over = is_over(notice.at, at, recommended=notice.kind == "rebalance")
    return "expired" if over else "waiting"


def _is_withdrawn(notice: Notice, withdrawn: Collection[tuple[InstanceId, datetime]]) -> bool:
    """Return whether it announces a change that another message withdraws."""
    if notice.kind != "scheduled-change" or notice.at is None:
        return False
    return (notice.instance, notice.at) in withdrawn


def _knows_all_instances(cloud: CloudState | None) -> bool:
    """Return whether an instance that is not shown is none of ours."""
    return cloud is not None and cloud.instances_known and not cloud.silent


def _is_acted_on(notice: Notice, node: Node | None, at: datetime) -> bool:
    """Return whether the node has the message's annotation, or one that outranks it for good.

    A scheduled change may be withdrawn, so what it outranks has to be on the node as well; of
    changes the first `FURTHER_MAX`.
    """
    if node is None or notice.at is None:
        return False
    known = [
        interruption_notice
        for interruption_notice in read_notices(node)
        if not interruption_notice.is_over(at)
    ]
    ends = [
        interruption_notice.deadline
        for interruption_notice in known
        if interruption_notice.action in SPOT_ACTIONS
    ]
    if notice.kind == "spot-interruption":
        begun = "interruption" in drain_reasons(node)
        return begun and bool(ends) and min(ends) <= notice.at
    if ends:
        return True
    action = REBALANCE_RECOMMENDATION if notice.kind == "rebalance" else SCHEDULED_CHANGE
    of_kind = [
        interruption_notice.deadline
        for interruption_notice in known
        if interruption_notice.action == action
    ]
    if notice.kind == "rebalance":
        return bool(of_kind) and min(of_kind) <= notice.at
    return notice.at in of_kind or sum(each <= notice.at for each in of_kind) >= FURTHER_MAX
