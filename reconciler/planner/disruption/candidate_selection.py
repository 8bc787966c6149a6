"""Which nodes with pods may be emptied, judged by their use, annotations and pods."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from reconciler.model.actions import DRAIN_STARTED, PODS_BLOCK_SINCE, PolicyName
from reconciler.model.cluster import Node, Pod
from reconciler.model.ids import FleetKey
from reconciler.model.text import duration
from reconciler.planner.disruption.blocker import Blocker
from reconciler.planner.disruption.blockers.grace_periods import grace_ends_at, grace_seconds
from reconciler.planner.disruption.blockers.move_cost import not_worth_moving
from reconciler.planner.disruption.blockers.nodes import first_blocker
from reconciler.planner.disruption.blockers.pods import at_minimum, movable
from reconciler.planner.disruption.blockers.settling import settled_at
from reconciler.planner.disruption.candidate import Candidate
from reconciler.planner.disruption.disruption_context import DisruptionContext
from reconciler.planner.disruption.drains.actions import (
    attempts_dated_again,
    last_failure,
    rests_until,
)
from reconciler.planner.disruption.drains.idleness import counted, is_empty, unneeded_since
from reconciler.planner.disruption.drains.overdue import (
    ends_at,
    failed_since_expiry,
    needs_a_place,
    until_end,
    update_overdue_timer,
)
from reconciler.planner.disruption.drains.timers import stop_timer
from reconciler.planner.disruption.utilisation import Utilisation
from reconciler.planner.fleets.inventory import FleetStatus
from reconciler.planner.fleets.updates.outdated import Outdated
from reconciler.planner.settings import FleetSettings
from reconciler.planner.view import ClusterView

BOUNCE_AFTER = timedelta(seconds=1800)
"""`bounce_deployment_pods` moves pods that have run this long, as in Kluster Fleet Manager."""


def find_candidates(context: DisruptionContext) -> list[Candidate]:
    """Return every node whose use, annotations and pods allow it to be emptied, sorted."""
    builder = context.builder
    view = builder.view
    utilisation = Utilisation(builder)
    candidates: list[Candidate] = []
    for node, key in context.open_nodes:
        if node.name not in view.nodes_in_use:
            # Its pods are gone: whatever keeps it next, such as a new Job, has its full time.
            update_overdue_timer(
                builder, node, view.statuses[key].settings, blocked=False, empty=True
            )
            if is_empty(builder, node):
                continue
        if DRAIN_STARTED in node.annotations:
            # Its taint was removed. This plan notes the end of the drain, from which its rest
            # counts.
            builder.block(node, "drain-cool-off", "its last drain has just ended")
            continue
        candidate = _candidate(context, utilisation, node, key)
        if candidate is None:
            stop_timer(builder, node)
        else:
            if candidate.outdated is None:
                in_time = may_go_in_time(context, candidate, when_others_moved=True)
                candidate.kept_for_long = not in_time
            candidates.append(candidate)
            builder.change_nodes(*attempts_dated_again(view, node))
    return sorted(candidates, key=Candidate.order)


def may_go_in_time(
    context: DisruptionContext, candidate: Candidate, *, when_others_moved: bool = False
) -> bool:
    """Return whether the node can be emptied later, once its time or its turn has come.

    Args:
        context: The run.
        candidate: The node.
        when_others_moved: Whether to ignore limits on pods that end by themselves once the pods
            that are moved now run on their new nodes.
    """
    if not candidate.status.settings.scale_in.non_empty_at_once_max:
        return False
    if context.ledger.keeps_every_node(candidate.status.key, candidate.reason):
        return False
    return lasting_blocker(context, candidate, when_others_moved=when_others_moved) is None


def lasting_blocker(
    context: DisruptionContext, candidate: Candidate, *, when_others_moved: bool = False
) -> Blocker | None:
    """Return what keeps the node from being emptied and may do so for long; None if nothing.

    The arguments are those of `may_go_in_time`.
    """
    view, overdue = context.view, candidate.overdue(context.view.at)
    more = until_end(view, candidate.ends_at)
    rests = rests_until(view, candidate.node)
    if rests is not None and not (overdue and _failed_before(view, candidate)):
        detail = f"its last drain failed: not again before {rests:%H:%M:%S}{more}"
        return Blocker("drain-cool-off", detail, rests)
    replaced_here = candidate.outdated is not None and not candidate.goes_back_to_spot
    key, name = candidate.status.key, candidate.node.name
    if not replaced_here and not context.removal_quota.allows(key, name):
        return at_minimum(candidate.status)
    moving, must_go = candidate.moving, candidate.must_go
    blocker = context.ledger.drain_blocker(moving, must_go=must_go, overdue=overdue)
    if when_others_moved and blocker is not None:
        passes = not context.ledger.keeps_for_long(moving, must_go=must_go, overdue=overdue)
        blocker = None if passes else blocker
    if blocker is not None:
        # The limit on moved pods holds after the time too, which stands still meanwhile.
        return Blocker(blocker.code, blocker.detail + (more if blocker.code == "budget" else ""))
    return _not_worth_moving(context.view, candidate)


def _failed_before(view: ClusterView, candidate: Candidate) -> bool:
    """Return whether its last drain failed before `terminate_after`, when it must not rest."""
    failure, end = last_failure(view, candidate.node), candidate.ends_at
    return failure is None or end is None or failure.latest < end


def _not_worth_moving(view: ClusterView, candidate: Candidate) -> Blocker | None:
    """Return a blocker if the moves cost more than the node saves; None if the node must go."""
    offer, settings = view.offers[candidate.status.key], candidate.status.settings
    if candidate.must_go or not offer.priced:
        return None
    price = offer.nano_usd_per_hour
    return not_worth_moving(candidate.moving, price, settings.scale_in.move_cost_usd)


def _candidate(
    context: DisruptionContext, utilisation: Utilisation, node: Node, key: FleetKey
) -> Candidate | None:
    """Return the node as a candidate; None if it is used enough, or something keeps it.

    What keeps it is noted in the plan.
    """
    builder, status = context.builder, context.view.statuses[key]
    view = builder.view
    if view.row_of[node.name] in builder.used_rows:
        return None
    share, threshold = utilisation.highest(node.name), status.settings.scale_in
    pods = view.pods_on.get(node.name, [])
    bounces = status.settings.bounce_deployment_pods and _bounce(view, pods)
    little_used = share < threshold.utilization_threshold
    outdated = view.inventory.outdated.get(node.name)
    if not (little_used or bounces or outdated or view.settings.consolidation):
        update_overdue_timer(builder, node, status.settings, blocked=False)
        return None
    end = ends_at(view, node, status.settings)
    overdue = end is not None and end <= view.at
    moving, again, blocked = _movable_or_blocker(context, node, status, end)
    if blocked is not None or not moving:
        builder.block(node, *(blocked or ("deleting", "its last pods are being deleted")))
        return None
    policy, because = _cause(utilisation, node, outdated, little_used=little_used, bounces=bounces)
    return Candidate(
        node=node,
        status=status,
        moving=moving,
        placed=[*(pod for pod in moving if not overdue or needs_a_place(pod)), *again],
        share=share,
        bounces=bounces,
        since=unneeded_since(view, node),
        settled_at=_settled_at(view, pods, policy, status.settings, end if overdue else None),
        failures_rank=int(rests_until(view, node) is not None),
        policy=policy,
        because=because,
        outdated=outdated,
        ends_at=end,
    )


def _settled_at(
    view: ClusterView,
    pods: Sequence[Pod],
    policy: PolicyName,
    settings: FleetSettings,
    overdue_since: datetime | None,
) -> datetime | None:
    """Return from when the node's pods may be moved; None if there is nothing to wait for.

    Pods that come after `terminate_after` has passed do not delay the end again and again.
    """
    if settings.departing:
        return None
    settled = settled_at(pods, policy, settings.scale_in, view.at)
    if settled is None or overdue_since is None:
        return settled
    return min(settled, overdue_since + timedelta(seconds=settings.scale_in.settle_seconds))


def _cause(
    utilisation: Utilisation,
    node: Node,
    outdated: Outdated | None,
    *,
    little_used: bool,
    bounces: bool,
) -> tuple[PolicyName, str]:
    """Return the policy that removes a node, and why, in words."""
    if outdated is not None:
        return outdated.policy, outdated.because
    policy: PolicyName = "scale-in" if little_used or bounces else "consolidation"
    if bounces:
        return policy, "all its pods belong to ReplicaSets and have run for 30m"
    return policy, f"its pods ask for {utilisation.shown(node.name)}"


def _movable_or_blocker(
    context: DisruptionContext, node: Node, status: FleetStatus, end: datetime | None
) -> tuple[list[Pod], list[Pod], Blocker | None]:
    """Return what `movable` returns, after asking what keeps the node itself.

    The clock of an expired node is set by the usual rules; once `end` has passed its pods are
    judged by those for overdue nodes.
    """
    view = context.view
    blocked = (
        first_blocker(view, node, status)
        or _too_young(view, node, status)
        or context.sets.blocker(node.name)
    )
    if blocked is not None:
        return [], [], blocked
    pods = view.pods_on.get(node.name, [])
    moving, again, blocked = movable(context.judge(status.settings), pods)
    _note_overdue_timer(context, node, status, moving, blocked)
    if end is not None and end <= view.at:
        return movable(context.judge(status.settings, overdue=True), pods)
    if blocked is not None and end is not None:
        blocked = blocked._replace(detail=blocked.detail + until_end(view, end))
    return moving, again, blocked


def as_outdated(
    context: DisruptionContext, node: Node, key: FleetKey, outdated: Outdated
) -> Candidate | Blocker:
    """Return the node as the candidate that it will be once it is to be replaced.

    Nothing is noted in the plan.

    Args:
        context: The limits of this plan.
        node: The node.
        key: Its fleet.
        outdated: Why it will be replaced.

    Returns:
        The candidate, or the blocker if one of its pods may not be moved.
    """
    status = context.view.statuses[key]
    pods = context.view.pods_on.get(node.name, [])
    moving, again, blocked = movable(context.judge(status.settings), pods)
    return blocked or Candidate(
        node=node,
        status=status,
        moving=moving,
        placed=[*moving, *again],
        share=0.0,
        bounces=False,
        since=None,
        settled_at=None,
        failures_rank=0,
        policy=outdated.policy,
        because=outdated.because,
        outdated=outdated,
    )


def _note_overdue_timer(
    context: DisruptionContext,
    node: Node,
    status: FleetStatus,
    moving: Sequence[Pod],
    blocked: Blocker | None,
) -> None:
    """Note on an expired node since when pods have kept it, or that they do not keep it now.

    The second is noted by `pause_overdue_timers`, if the plan does not empty the node.
    """
    settings, view = status.settings, context.view
    if settings.terminate_after_seconds is None and PODS_BLOCK_SINCE not in node.annotations:
        return
    blocker = blocked or context.ledger.drain_blocker(moving, must_go=True)
    kept = blocked is not None or (blocker is not None and blocker.code == "budget")
    if kept or failed_since_expiry(view, node, settings):
        update_overdue_timer(context.builder, node, settings, blocked=True)
    else:
        context.not_kept[node.name] = settings


def pause_overdue_timers(context: DisruptionContext) -> None:
    """Let the time of each expired node stand still that no pod keeps, unless it is emptied now."""
    builder, view = context.builder, context.view
    begun = {removal.node for removal in builder.removals}
    for name, settings in context.not_kept.items():
        if name not in begun:
            update_overdue_timer(builder, view.nodes[name], settings, blocked=False)


def _bounce(view: ClusterView, pods: Sequence[Pod]) -> bool:
    """Return whether every counted pod belongs to a ReplicaSet and has run for `BOUNCE_AFTER`."""
    return all(
        pod.owner is not None
        and pod.owner.kind == "ReplicaSet"
        and pod.started_at is not None
        and view.at - pod.started_at >= BOUNCE_AFTER
        for pod in counted(pods)
    )


def _too_young(view: ClusterView, node: Node, status: FleetStatus) -> Blocker | None:
    """Return a blocker while the node is younger than the grace period in force; None after it."""
    periods, timezone = status.settings.grace_periods, view.settings.timezone
    grace = grace_seconds(periods, view.at, timezone) if periods else None
    if grace is None or node.created_at is None:
        return None
    age = view.at - node.created_at
    if age >= timedelta(seconds=grace):
        return None
    detail = f"it is {duration(age)} old, its grace period is {grace:g} s"
    until = grace_ends_at(periods, node.created_at, view.at, timezone)
    return Blocker("grace-period", detail, until)
