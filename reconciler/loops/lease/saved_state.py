"""What a cycle saves on the Lease for the next cycle and the next process."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache

from reconciler.model.actions import (
    BOUND_TO,
    FLEET_STATE,
    LAST_DESCHEDULED,
    LAST_DRAIN,
    RESUME_UPDATE,
    DeletePod,
    EvictPod,
    PolicyName,
    SetCapacity,
    TerminateInstance,
    UntaintNode,
)
from reconciler.model.errors import TerminationProtected
from reconciler.model.outcome import Outcome
from reconciler.model.plan import Plan
from reconciler.model.saved_state import (
    InterruptedPool,
    LostFleet,
    ProtectedInstance,
    SavedDemandState,
    SavedFleetState,
    SavedRaise,
    StuckEnd,
)
from reconciler.model.snapshot import ClusterState, Snapshot
from reconciler.planner.fleets.instances.protected_instances import with_protected
from reconciler.planner.raise_limits import with_raise
from reconciler.records.kubernetes import encode_fleet_state, encode_proof
from reconciler.records.times import rfc3339_exact


def annotations_to_save(
    snapshot: Snapshot, plan: Plan, outcomes: Iterable[Outcome]
) -> dict[str, str | None]:
    """Return the annotations that differ from those in the snapshot.

    Args:
        snapshot: What was observed, the Lease as it is.
        plan: The plan; its saved states are those after this cycle.
        outcomes: A pod that the rescheduler moved, or the descheduler evicted, restarts its pause.
    """
    annotations: dict[str, str | None] = {}
    state = _planned(plan)
    if state != _observed(snapshot):
        annotations[FLEET_STATE] = state
    proof = plan.binding.kept
    if proof is not None and proof != snapshot.cluster.proof:
        annotations[BOUND_TO] = encode_proof(proof)
    done = list(outcomes)
    if any(_was_moved_to_spot(outcome) for outcome in done):
        annotations[LAST_DRAIN] = rfc3339_exact(snapshot.at)
    if snapshot.cluster.resumed_updates:
        annotations[RESUME_UPDATE] = None  # `Plan.resumes` says what came of it
    if any(_was_evicted_by("deschedule", outcome) for outcome in done):
        annotations[LAST_DESCHEDULED] = rfc3339_exact(snapshot.at)
    return annotations


def with_refused_ends(plan: Plan, outcomes: Iterable[Outcome]) -> Plan:
    """Return the plan with the instances that its execution found protected from termination."""
    instance_ids = [
        outcome.action.instance
        for outcome in outcomes
        if isinstance(outcome.action, TerminateInstance) and _is_protected(outcome)
    ]
    known = with_protected(plan.protected_instances, instance_ids, plan.at)
    return replace(plan, protected_instances=known)


def _is_protected(outcome: Outcome) -> bool:
    return outcome.error == TerminationProtected.__name__


def with_raises(plan: Plan, outcomes: Iterable[Outcome]) -> Plan:
    """Return the plan with the raises for pods and headroom counted that EC2 accepted.

    They count for `raise_limits`. So does a raise whose answer was lost, since EC2 may have
    accepted it.
    """
    taken = {
        (outcome.action.fleet, outcome.action.region)
        for outcome in outcomes
        if isinstance(outcome.action, SetCapacity) and outcome.kind in {"applied", "unknown"}
    }
    bought = [new for new in plan.new_nodes if (new.fleet, new.region) in taken]
    nodes_before, nano_usd_before = plan.ran_before
    added = SavedRaise(
        at=plan.at,
        nodes=sum(new.nodes for new in bought),
        nano_usd_per_hour=sum(new.nano_usd_per_hour for new in bought),
        nodes_before=nodes_before,
        nano_usd_before=nano_usd_before,
    )
    return replace(plan, raises=with_raise(plan.raises, added))


def with_stuck_ends(plan: Plan, outcomes: Iterable[Outcome]) -> Plan:
    """Return the plan without its ends of stuck instances that were refused, as nothing was ended.

    They would use up the limit of the hour. Ends together with their part of the target count in
    any case, since several are one call, of which a part may have been executed; except those of
    protected instances.
    """
    refusals = {
        outcome.action.instance
        for outcome in outcomes
        if isinstance(outcome.action, TerminateInstance)
        and (not outcome.action.decrement or _is_protected(outcome))
        and outcome.kind == "refused"
    }
    kept = [e for e in plan.stuck_ends if e.at != plan.at or e.instance not in refusals]
    return replace(plan, stuck_ends=tuple(kept))


@dataclass(slots=True)
class UnsavedState:
    """State that this process knows and the Lease does not show: not yet, or never in a dry run."""

    _plan: Plan | None = None
    _observed_with_plan: str = ""
    """The state on the Lease when the plan was made: once it differs, the Lease takes
    precedence."""
    _last_drain_at: datetime | None = None
    """When the spot rescheduler last moved pods of this process's plans."""

    def recalled(self, observed: Snapshot) -> Snapshot:
        """Return the snapshot with what this process knows better."""
        plan = self._plan
        if plan is None:
            return observed
        if _observed(observed) != self._observed_with_plan:
            self.forget()
            return observed
        cluster = replace(
            observed.cluster,
            fleet_states=plan.fleet_states,
            demands=plan.demands,
            lost_fleets=plan.lost_fleets,
            stuck_ends=plan.stuck_ends,
            raises=plan.raises,
            last_descheduled_at=_later(
                observed.cluster.last_descheduled_at, plan.last_descheduled_at
            ),
            last_drain_at=_later(observed.cluster.last_drain_at, self._last_drain_at),
            interrupted_pools=plan.interrupted_pools,
            protected_instances=plan.protected_instances,
        )
        return replace(observed, cluster=cluster)

    def note(self, observed: Snapshot, plan: Plan, outcomes: Iterable[Outcome]) -> None:
        """Keep the state of an executed plan, whether or not the Lease could be written."""
        self._plan, self._observed_with_plan = plan, _observed(observed)
        if any(_was_moved_to_spot(outcome) for outcome in outcomes):
            self._last_drain_at = observed.at

    def forget(self) -> None:
        """Drop our state: another process acts, and what it saves on the Lease is valid."""
        self._plan, self._last_drain_at = None, None


def _later(one: datetime | None, other: datetime | None) -> datetime | None:
    return max((at for at in (one, other) if at is not None), default=None)


def _planned(plan: Plan) -> str:
    return _state_of(*_parts(plan))


def _observed(snapshot: Snapshot) -> str:
    return _state_of(*_parts(snapshot.cluster))


_Parts = tuple[
    tuple[SavedFleetState, ...],
    tuple[SavedDemandState, ...],
    tuple[LostFleet, ...],
    tuple[StuckEnd, ...],
    tuple[SavedRaise, ...],
    tuple[InterruptedPool, ...],
    tuple[ProtectedInstance, ...],
]


def _parts(of: Plan | ClusterState) -> _Parts:
    """Return the state that plan and cluster both hold, in the order in which it is encoded."""
    return (
        of.fleet_states,
        of.demands,
        of.lost_fleets,
        of.stuck_ends,
        of.raises,
        of.interrupted_pools,
        of.protected_instances,
    )


@lru_cache(maxsize=4)
def _state_of(*parts: *_Parts) -> str:
    """Return the annotation; cached, as a cycle needs it several times and it seldom changes."""
    return encode_fleet_state(*parts)


def _was_evicted_by(policy: PolicyName, outcome: Outcome) -> bool:
    action = outcome.action
    return (
        outcome.kind == "applied"
        and action.policy == policy
        and isinstance(action, EvictPod | DeletePod)
    )


def _was_moved_to_spot(outcome: Outcome) -> bool:
    """Return whether a pod was moved or a drain ended: a crash may have lost the note of a move."""
    ended = isinstance(outcome.action, UntaintNode) and outcome.kind == "applied"
    theirs = ended and outcome.action.policy == "spot-reschedule"
    return theirs or _was_evicted_by("spot-reschedule", outcome)
