"""A node that may be emptied: what moves, since when it is unneeded, when its turn comes."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.model.actions import UNNEEDED_SINCE, PolicyName
from reconciler.model.cluster import Node, Pod
from reconciler.planner.disruption.blockers.move_cost import moves_rank
from reconciler.planner.disruption_settings import DisruptionReason
from reconciler.planner.fleets.inventory import FleetStatus
from reconciler.planner.fleets.updates.outdated import Outdated


@dataclass(slots=True, eq=False)
class Candidate:
    """A node that may be emptied if its pods fit elsewhere."""

    node: Node
    status: FleetStatus
    moving: list[Pod]
    """The pods that would be evicted."""
    placed: list[Pod]
    """The pods that need a place elsewhere: those that move, and StatefulSet pods being deleted."""
    share: float
    bounces: bool
    """Whether its pods may be moved without a timer, because all have run for 30 minutes."""
    since: datetime | None
    """Since when it has been unneeded; None if its timer starts now."""
    settled_at: datetime | None
    """From when its pods may be moved; None if there is nothing to wait for."""
    failures_rank: int
    """1 after a failed drain, else 0: other nodes are drained first."""
    policy: PolicyName
    because: str
    outdated: Outdated | None = None
    """Why it is to be replaced regardless of its use; None if it is a candidate by its use only."""
    ends_at: datetime | None = None
    """When it is ended regardless of its pods (`terminate_after`); None if never."""
    kept_for_long: bool = False
    """Whether a limit keeps it for more than minutes, such as a PodDisruptionBudget of 0."""

    @property
    def must_go(self) -> bool:
        """Return whether it is drained at any cost of the moves.

        It is when it is to be replaced, or when its whole fleet departs.
        """
        replaced = self.outdated is not None and not self.goes_back_to_spot
        return replaced or self.status.settings.departing

    @property
    def goes_back_to_spot(self) -> bool:
        """Return whether it is drained only if a cheaper spot node can replace it."""
        return self.outdated is not None and self.outdated.only_for_cheaper_spot

    @property
    def reason(self) -> DisruptionReason:
        """Return the reason by which disruption budgets count it."""
        if self.outdated is not None:
            return self.outdated.reason
        if self.status.settings.departing:
            return "drifted"
        return "consolidation" if self.policy == "consolidation" else "underutilized"

    @property
    def timed(self) -> bool:
        """Return whether it has a readable timer."""
        return UNNEEDED_SINCE in self.node.annotations and self.since is not None

    def overdue(self, at: datetime) -> bool:
        """Return whether its `terminate_after` has passed."""
        return self.ends_at is not None and self.ends_at <= at

    def eligible(self, at: datetime) -> bool:
        """Return whether it has been unneeded for `unneeded_time` and its pods have settled."""
        return self.settles_for(at) is None and self.unneeded_long_enough(at)

    def unneeded_long_enough(self, at: datetime) -> bool:
        """Return whether it has been unneeded for `unneeded_time`."""
        if self.bounces or self.outdated is not None:
            return True
        needed = timedelta(seconds=self.status.settings.scale_in.unneeded_seconds)
        return at - (self.since or at) >= needed

    def settles_for(self, at: datetime) -> timedelta | None:
        """Return how long its pods still need to settle; None if they have settled."""
        if self.settled_at is None or self.settled_at <= at:
            return None
        return self.settled_at - at

    def order(self) -> tuple[object, ...]:
        """Return the sort key: the longest unneeded node comes first, then the least used one.

        Nodes that are to be replaced come before all others, the one with the oldest reason first.
        Those whose drain failed, or that a limit keeps for long, come last: what they would need
        must not keep those that can go.

        The order is the same from cycle to cycle. Of equally used nodes the one with fewer moves
        comes first. (Fewer moves before less use was tried: over two days of docs/month.md it moved
        a tenth more pods, to save 3 % of the node-hours.)
        """
        since = self.outdated.since if self.outdated is not None else self.since
        waited = self.outdated is None, since is None, since.timestamp() if since else 0.0
        last = max(self.failures_rank, self.kept_for_long)
        return (last, *waited, self.share, *moves_rank(self.moving), self.node.name)

    def order_in_set(self) -> tuple[object, ...]:
        """Return the sort key by which nodes of a set are drained, as when the set was checked."""
        return (*moves_rank(self.moving), self.node.name)
