"""The actions that begin, continue, cancel and end a drain."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from reconciler.model.actions import (
    DRAIN_FAILED,
    DRAIN_PROGRESS,
    DRAIN_STARTED,
    DRAINING_TAINT,
    REPLACEMENT_ASKED,
    UNNEEDED_SINCE,
    AnnotateNode,
    AnyAction,
    DeleteNode,
    DeletePod,
    EvictPod,
    PolicyName,
    TaintNode,
    TerminateInstance,
    UntaintNode,
)
from reconciler.model.cluster import Node, Pod, Taint
from reconciler.model.fleet import Provider
from reconciler.model.ids import FleetId
from reconciler.model.text import parse_rfc3339, rfc3339
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.cool_off import cool_off
from reconciler.planner.disruption.drains.attempts import Attempts, read_attempts
from reconciler.planner.disruption.drains.idleness import is_empty
from reconciler.planner.disruption.drains.rounds import DrainProgress
from reconciler.planner.disruption_settings import ScaleInSettings
from reconciler.planner.fleets.inventory import FleetStatus
from reconciler.planner.nodes.drain_taints import is_draining
from reconciler.planner.rules import Terms
from reconciler.planner.view import ClusterView

_FORGOTTEN_AFTER = timedelta(hours=6)
"""After this long a failure no longer lengthens the next cool-off."""


def terms_of(settings: ScaleInSettings, *, overdue: bool = False) -> Terms:
    """Return what a fleet's scale-in settings allow to do with pods; `overdue` widens it."""
    return Terms(
        move_bare_pods=settings.move_bare_pods,
        move_local_storage=settings.move_local_storage,
        move_system_pods=settings.move_system_pods,
        graceful_termination_max_seconds=settings.graceful_termination_max_seconds,
        overdue=overdue,
    )


def annotate(
    node: Node, key: str, value: str | None, policy: PolicyName, because: str
) -> AnnotateNode:
    """Return the action that writes one annotation of a node; the value None removes it."""
    return AnnotateNode(node=node.name, key=key, value=value, policy=policy, because=because)


def taint(node: Node, policy: PolicyName, because: str, *, forced: bool = False) -> TaintNode:
    """Return the action that adds our draining taint."""
    # A forced drain ends with the node. One that only follows EC2's recommendation may be given
    # back.
    graceful = policy == "interruption" and not forced
    value = "rebalance" if graceful else policy
    return TaintNode(
        node=node.name,
        taint=Taint(key=DRAINING_TAINT, value=value, effect="NoSchedule"),
        policy=policy,
        because=because,
        forced=forced,
    )


def untaint(node: Node, policy: PolicyName, because: str) -> UntaintNode:
    """Return the action that removes our draining taint."""
    return UntaintNode(node=node.name, key=DRAINING_TAINT, policy=policy, because=because)


def evictions(
    node: Node,
    pods: Iterable[Pod],
    grace_max_seconds: float,
    policy: PolicyName,
    because: str,
    *,
    forced: bool = False,
) -> list[EvictPod]:
    """Return one eviction per pod, with the smaller of its own grace period and the limit."""
    return [
        EvictPod(
            pod=pod.key,
            node=node.name,
            grace_seconds=int(min(pod.spec.termination_grace_seconds, grace_max_seconds)),
            policy=policy,
            because=because,
            forced=forced,
        )
        for pod in sorted(pods, key=lambda pod: pod.key)
    ]


def begin_drain(
    view: ClusterView,
    node: Node,
    evicted: tuple[Sequence[EvictPod | DeletePod], DrainProgress],
    policy: PolicyName,
    because: str,
    *,
    notes: Sequence[AnnotateNode] = (),
) -> tuple[AnyAction, ...]:
    """Return the actions that begin the drain of a node with pods; a crash between them is safe.

    Args:
        view: The facts.
        node: The node.
        evicted: The evictions that budgets allow now, and the annotations about those to come.
        policy: Whose decision it is.
        because: Why.
        notes: What else is noted on it before its pods are evicted.
    """
    moved, progress = evicted
    noted: str | None = str(progress) if progress.rounds > 1 else None
    marks = [annotate(node, DRAIN_STARTED, rfc3339(view.at), policy, because)]
    if noted is not None or DRAIN_PROGRESS in node.annotations:
        marks.insert(0, annotate(node, DRAIN_PROGRESS, noted, policy, because))
    return (taint(node, policy, because), *marks, *notes, *moved)


def drain_started(view: ClusterView, node: Node) -> datetime | None:
    """Return when the node's drain began; None if no start is noted.

    A time in the future, or one that is unreadable, counts as now.
    """
    text = node.annotations.get(DRAIN_STARTED)
    if text is None:
        return None
    return min(parse_rfc3339(text) or view.at, view.at)


def last_failure(view: ClusterView, node: Node, since: datetime | None = None) -> Attempts | None:
    """Return when the node's last drain failed, and how many failed in a row.

    None if no failure is noted, or only one that is forgotten by now.

    Args:
        view: The facts.
        node: The node.
        since: Count a failure that was not forgotten at this time; None for the time of the plan.
    """
    within = _FORGOTTEN_AFTER + (view.at - (since or view.at))
    return read_attempts(node.annotations.get(DRAIN_FAILED, ""), view.at, within)


def attempts_dated_again(view: ClusterView, node: Node) -> list[AnnotateNode]:
    """Return the annotations that correct future times of failures and purchases."""
    annotations: list[AnnotateNode] = []
    for key in (DRAIN_FAILED, REPLACEMENT_ASKED):
        text = node.annotations.get(key, "")
        when = parse_rfc3339(text.partition("/")[0])
        if when is not None and when > view.at:
            noted = read_attempts(text, view.at, _FORGOTTEN_AFTER)
            annotations.append(
                annotate(node, key, str(noted), "scale-in", "its timestamp was in the future")
            )
    return annotations


def rests_until(view: ClusterView, node: Node) -> datetime | None:
    """Return until when the node's drain is not tried again; None if it may be."""
    failure = last_failure(view, node)
    if failure is None:
        return None
    until = failure.latest + cool_off(failure.count)
    return until if until > view.at else None


def give_up(
    view: ClusterView, node: Node, policy: PolicyName, because: str
) -> tuple[AnnotateNode | UntaintNode, ...]:
    """Return the actions that cancel a drain: the taint is removed and a cool-off begins.

    The order makes each step safe to crash after: the failure is noted while the taint still shows
    what failed, and the next plan removes a taint without the start of a drain. A failure that is
    already noted for this drain is not counted twice.
    """
    return (*end_of_drain(view, node, policy, because), untaint(node, policy, because))


def end_of_drain(
    view: ClusterView, node: Node, policy: PolicyName, because: str
) -> tuple[AnnotateNode, ...]:
    """Return the annotations that note a failed drain, after which the node rests."""
    failure, started = last_failure(view, node), drain_started(view, node)
    actions: list[AnnotateNode] = []
    if failure is None or started is None or failure.latest < started:
        noted = Attempts(latest=view.at, count=1 if failure is None else failure.count + 1)
        actions.append(annotate(node, DRAIN_FAILED, str(noted), policy, because))
    # The start is removed last: while it is there the next plan cleans up after a crash.
    marks = [key for key in (DRAIN_PROGRESS, DRAIN_STARTED) if key in node.annotations]
    actions += [annotate(node, key, None, policy, because) for key in marks]
    return tuple(actions)


def give_back(
    node: Node, policy: PolicyName, because: str
) -> tuple[AnnotateNode | UntaintNode, ...]:
    """Return the actions that put a drained node back to use: its taint and timers are removed."""
    marks = (DRAIN_PROGRESS, DRAIN_STARTED, UNNEEDED_SINCE)
    timers = [key for key in marks if key in node.annotations]
    return (
        untaint(node, policy, because),
        *(annotate(node, key, None, policy, because) for key in timers),
    )


def end_empty_node(
    view: ClusterView,
    node: Node,
    status: FleetStatus,
    *,
    lower_target: bool,
    policy: PolicyName,
    because: str,
    returned: Sequence[Pod] = (),
) -> TerminateInstance:
    """Return the action that ends an empty node; the executor checks once more that it is empty.

    Args:
        view: The facts.
        node: The node; it has an instance.
        status: Its fleet.
        lower_target: Whether the fleet's target is lowered too; otherwise the fleet replaces the
            node.
        policy: Whose decision it is.
        because: Why.
        returned: Pods that end with it (`returned_pods`).
    """
    assert node.instance_id is not None, "checked before its drain began"
    return TerminateInstance(
        instance=node.instance_id,
        node=node.name,
        fleet=status.key.name,
        fleet_id=status.live.id if status.live else FleetId(""),
        provider=status.settings.provider,
        region=status.key.region,
        decrement=lower_target,
        precondition="empty",
        from_capacity=status.current,
        stuck_terminating=(
            *view.stuck_terminating(node.name),
            *sorted(pod.key for pod in returned),
        ),
        policy=policy,
        because=because,
    )


def delete_when_terminated(builder: PlanBuilder, node: Node, provider: Provider) -> None:
    """Delete the Node object once EC2 shows its instance as terminated: the last step of a drain.

    It is not deleted while another machine may run pods under the name, which would be lost with
    the object. With the taint of a drain and no pods it is deleted: otherwise the node would stay
    closed for good.
    """
    inventory = builder.view.inventory
    instance = inventory.instance_of_node[node.name]
    closed = is_draining(node) and is_empty(builder, node)
    if node.name in inventory.taken_over and not closed:
        detail = f"{instance.id} is gone, but another instance has its name, and the node is Ready"
        builder.block(node, "unreadable", detail)
    elif instance.state == "terminated" and not node.deleting:
        builder.delete_terminated(
            DeleteNode(
                node=node.name,
                uid=node.uid,
                instance=instance.id,
                provider=provider,
                region=instance.region,
                policy="scale-in",
                because="its instance is terminated",
            )
        )
