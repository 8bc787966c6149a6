"""Which nodes with pods may be emptied, as far as use, annotations and pods say."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.model.actions import (
    DRAIN_STARTED,
    PODS_BLOCK_SINCE,
    UNNEEDED_SINCE,
    PolicyName,
)
from reconciler.model.cluster import Node, Pod
from reconciler.model.ids import FleetKey
from reconciler.model.text import duration
from reconciler.planner.disruption.blocker import Blocker
from reconciler.planner.disruption.blockers.grace_periods import grace_seconds
from reconciler.planner.disruption.blockers.move_cost import moves_rank, not_worth_moving
from reconciler.planner.disruption.blockers.nodes import first_blocker
from reconciler.planner.disruption.blockers.pods import at_minimum, movable
from reconciler.planner.disruption.blockers.settling import settled_at
from reconciler.planner.disruption.context import DisruptionContext, open_nodes
from reconciler.planner.disruption.drains.actions import (
    attempts_dated_again,
    last_failure,
    rests_until,
)
from reconciler.planner.disruption.drains.idleness import counted, in_use, is_empty, unneeded_since
from reconciler.planner.disruption.drains.overdue import (
    ends_at,
    failed_since_expiry,
    tend_clock,
    until_end,
)
from reconciler.planner.disruption.drains.timers import stop_timer
from reconciler.planner.disruption.utilisation import Utilisation
from reconciler.planner.fleets.inventory import FleetStatus
from reconciler.planner.fleets.updates.outdated import Outdated
from reconciler.planner.settings import DisruptionReason
from reconciler.planner.view import ClusterView

BOUNCE_AFTER = timedelta(seconds=1800)
"""Kluster Fleet Manager's figure for `bounce_deployment_pods`."""


@dataclass(slots=True, eq=False)
class Candidate:
    """Describes a node that may be emptied, if its pods fit elsewhere."""

    node: Node
    status: FleetStatus
    moving: list[Pod]
    """Pods that would be evicted."""
    placed: list[Pod]
    """Pods that need a place elsewhere: these, and StatefulSets' that are stopping there."""
    share: float
    bounces: bool
    """Whether its pods may be moved without a timer, as all have run for long."""
    since: datetime | None
    """Since when it has been unneeded; None when that begins now."""
    settled_at: datetime | None
    """From when its pods may be moved; None when that needs no waiting."""
    failures_rank: int
    """1 after a failed drain: others go first."""
    policy: PolicyName
    because: str
    outdated: Outdated | None = None
    """Why it is to be replaced whatever its use; None when only its use speaks."""
    ends_at: datetime | None = None
    """When it is ended whatever its pods say (`terminate_after`); None when it is not."""

    @property
    def must_go(self) -> bool:
        """Whether its pods move at any price: it is to be replaced, or its whole fleet is to go."""
        replaced = self.outdated is not None and not self.goes_back_to_spot
        return replaced or self.status.settings.departing

    @property
    def goes_back_to_spot(self) -> bool:
        """Return whether it is to be replaced, by a spot node that costs less or not at all."""
        return self.outdated is not None and self.outdated.only_for_cheaper_spot

    @property
    def reason(self) -> DisruptionReason:
        """Return what a disruption budget calls it."""
        if self.outdated is not None:
            return self.outdated.reason
        if self.status.settings.departing:
            return "drifted"
        return "consolidation" if self.policy == "consolidation" else "underutilized"

    @property
    def timed(self) -> bool:
        """Return whether it has a timer that can be read."""
        return UNNEEDED_SINCE in self.node.annotations and self.since is not None

    def overdue(self, at: datetime) -> bool:
        """Return whether it has expired, and pods have kept it for longer than they may."""
        return self.ends_at is not None and self.ends_at <= at

    def eligible(self, at: datetime) -> bool:
        """Return whether it has been unneeded for `unneeded_time`, and its pods have settled."""
        return self.settles_for(at) is None and self.unneeded_long_enough(at)

    def unneeded_long_enough(self, at: datetime) -> bool:
        """Return whether it has been unneeded for `unneeded_time`."""
        if self.bounces or self.outdated is not None:
            return True
        needed = timedelta(seconds=self.status.settings.scale_in.unneeded_seconds)
        return at - (self.since or at) >= needed

    def settles_for(self, at: datetime) -> timedelta | None:
        """Return how long its pods still settle; None when they have settled."""
        if self.settled_at is None or self.settled_at <= at:
            return None
        return self.settled_at - at

    def order(self) -> tuple[object, ...]:
        """Return its rank: the longest unneeded node comes first, then the least used one.

        Nodes that are to be replaced come before all others, the one with the oldest reason first.

        The choice stays the same from cycle to cycle. Of equally used nodes the one with fewer
        moves comes first. (Fewer moves before less use was tried: over two days of docs/month.md
        it moved a tenth more pods, for 3 % more node-hours.)
        """
        since = self.outdated.since if self.outdated is not None else self.since
        waited = self.outdated is None, since is None, since.timestamp() if since else 0.0
        return (self.failures_rank, *waited, self.share, *moves_rank(self.moving), self.node.name)

    def order_in_set(self) -> tuple[object, ...]:
        """Return the rank by which nodes of a set leave, as when the set was checked."""
        return (*moves_rank(self.moving), self.node.name)


def find_candidates(context: DisruptionContext) -> list[Candidate]:
    """Return every node that its use, its annotations and its pods allow to empty, in order."""
    builder = context.builder
    view = builder.view
    utilisation = Utilisation(builder)
    found: list[Candidate] = []
    for node, key in open_nodes(view):
        if not in_use(view.pods_on.get(node.name, ())):
            # What keeps it next, be it a Job that has just started, has its whole time.
            tend_clock(builder, node, view.statuses[key].settings, blocked=False)
        if is_empty(builder, node):
            continue
        if DRAIN_STARTED in node.annotations:
            # Its taint came off; this plan notes the end of its drain, from which it rests.
            builder.block(node, "drain-cool-off", "its last drain has just ended")
            continue
        candidate = _candidate(context, utilisation, node, key)
        if candidate is None:
            stop_timer(builder, node)
        else:
            found.append(candidate)
            builder.mark(*attempts_dated_again(view, node))
    return sorted(found, key=Candidate.order)


def may_go_in_time(
    context: DisruptionContext, candidate: Candidate, *, when_others_moved: bool = False
) -> bool:
    """Return whether it is only time, or its turn, that keeps the node from being emptied.

    Args:
        context: The run.
        candidate: The node.
        when_others_moved: Whether limits on pods count only if they do not end by themselves when
            the pods that are moved now have come to their new nodes.
    """
    if not candidate.status.settings.scale_in.non_empty_at_once_max:
        return False
    if context.ledger.keeps_every_node(candidate.status.key, candidate.reason):
        return False
    return lasting_blocker(context, candidate, when_others_moved=when_others_moved) is None


def lasting_blocker(
    context: DisruptionContext, candidate: Candidate, *, when_others_moved: bool = False
) -> Blocker | None:
    """Return what keeps the node from being emptied, and may do so for long.

    See `may_go_in_time`.
    """
    view, overdue = context.view, candidate.overdue(context.view.at)
    more = until_end(view, candidate.ends_at)
    rests = rests_until(view, candidate.node)
    if rests is not None and not (overdue and _failed_before(view, candidate)):
        detail = f"its last drain failed: not again before {rests:%H:%M:%S}{more}"
        return Blocker("drain-cool-off", detail, rests)
    replaced_here = candidate.outdated is not None and not candidate.goes_back_to_spot
    key, name = candidate.status.key, candidate.node.name
    if not replaced_here and not context.room.may_leave(key, name):
        return at_minimum(candidate.status)
    found = context.ledger.drain_blocker(candidate.moving, overdue=overdue)
    if when_others_moved and found is not None:
        passes = not context.ledger.keeps_for_long(candidate.moving, overdue=overdue)
        found = None if passes else found
    if found is not None:
        return Blocker(found.code, found.detail + more)
    return _not_worth_moving(context.view, candidate)


def _failed_before(view: ClusterView, candidate: Candidate) -> bool:
    """Whether its last drain failed before pods were to be deleted: it need not rest for that."""
    failure, end = last_failure(view, candidate.node), candidate.ends_at
    return failure is None or end is None or failure.latest < end


def _not_worth_moving(view: ClusterView, candidate: Candidate) -> Blocker | None:
    """Return a blocker when moves cost more than the node saves; None for one that must go."""
    offer, settings = view.offers[candidate.status.key], candidate.status.settings
    if candidate.must_go or not offer.priced:
        return None
    price = offer.nano_usd_per_hour
    return not_worth_moving(candidate.moving, price, settings.scale_in.move_cost_usd)


def _candidate(
    context: DisruptionContext, utilisation: Utilisation, node: Node, key: FleetKey
) -> Candidate | None:
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
        tend_clock(builder, node, status.settings, blocked=False)
        return None
    moving: list[Pod] = []
    again: list[Pod] = []
    blocked: Blocker | None = (
        first_blocker(view, node, status)
        or _too_young(view, node, status)
        or context.sets.blocker(node.name)
    )
    end = ends_at(view, node, status.settings)
    overdue = end is not None and end <= view.at
    if blocked is None:
        moving, again, blocked = movable(context.judge(status.settings), pods)
        _tend_clock(context, node, status, moving, blocked)
        if overdue:
            moving, again, blocked = movable(context.judge(status.settings, overdue=True), pods)
        elif blocked is not None:
            blocked = blocked._replace(detail=blocked.detail + until_end(view, end))
    if blocked is not None or not moving:
        builder.block(node, *(blocked or ("deleting", "its last pods are being deleted")))
        return None
    policy: PolicyName = "scale-in" if little_used or bounces else "consolidation"
    departing = status.settings.departing
    because = f"its pods ask for {utilisation.shown(node.name)}"
    if bounces:
        because = "all its pods belong to ReplicaSets and have run for 30m"
    if outdated is not None:
        policy, because = outdated.policy, outdated.because
    return Candidate(
        node=node,
        status=status,
        moving=moving,
        placed=[*(pod for pod in moving if not overdue or pod.owner is not None), *again],
        share=share,
        bounces=bounces,
        since=unneeded_since(view, node),
        settled_at=None if departing else settled_at(pods, policy, threshold, view.at),
        failures_rank=int(rests_until(view, node) is not None),
        policy=policy,
        because=because,
        outdated=outdated,
        ends_at=end,
    )


def as_outdated(
    context: DisruptionContext, node: Node, key: FleetKey, outdated: Outdated
) -> Candidate | Blocker:
    """Return the candidate that the node will be when it is to be replaced; nothing is noted.

    Args:
        context: The limits of this plan.
        node: The node.
        key: Its fleet.
        outdated: Why it will be replaced.

    Returns:
        What keeps it when one of its pods may not be moved.
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


def _tend_clock(
    context: DisruptionContext,
    node: Node,
    status: FleetStatus,
    moving: Sequence[Pod],
    blocked: Blocker | None,
) -> None:
    """Note or clear on an expired node since when pods keep it.

    A limit that holds at some hours, or until others are gone, must not clear it: what pods allow
    only then would never be done.
    """
    settings, view = status.settings, context.view
    if settings.terminate_after_seconds is None and PODS_BLOCK_SINCE not in node.annotations:
        return
    found = blocked or context.ledger.drain_blocker(moving)
    kept = blocked is not None or (found is not None and found.code == "budget")
    kept = kept or failed_since_expiry(view, node, settings)
    limited = found is not None or _is_limited(context, node, status)
    tend_clock(context.builder, node, settings, blocked=kept, limited=limited)


def _is_limited(context: DisruptionContext, node: Node, status: FleetStatus) -> bool:
    """Return whether a disruption budget, or nodes that are being emptied, keep it for now."""
    outdated = context.view.inventory.outdated.get(node.name)
    if outdated is None:
        return False
    most = context.non_empty_at_once_max(status.settings, outdated.policy)
    if context.non_empty_draining >= most:
        return True
    return context.ledger.node_blocker(status.key, outdated.reason, node.name) is not None


def _bounce(view: ClusterView, pods: Sequence[Pod]) -> bool:
    """Return whether every counted pod belongs to a ReplicaSet and has run for 30 minutes."""
    return all(
        pod.owner is not None
        and pod.owner.kind == "ReplicaSet"
        and pod.started_at is not None
        and view.at - pod.started_at >= BOUNCE_AFTER
        for pod in counted(pods)
    )


def _too_young(view: ClusterView, node: Node, status: FleetStatus) -> Blocker | None:
    """Return a blocker while the node is no older than the grace period in force; None after."""
    grace = grace_seconds(status.settings.grace_periods, view.at, view.settings.timezone)
    if grace is None or node.created_at is None:
        return None
    age = view.at - node.created_at
    if age >= timedelta(seconds=grace):
        return None
    detail = f"it is {duration(age)} old, its grace period is {grace:g} s"
    return Blocker("grace-period", detail, node.created_at + timedelta(seconds=grace))
