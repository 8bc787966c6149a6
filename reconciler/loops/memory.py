"""What a cycle leaves for the next one, and for the next process, on the Lease."""

from collections.abc import Iterable

from reconciler.model.actions import FLEET_STATE, LAST_DRAIN, DeletePod, EvictPod
from reconciler.model.outcome import Outcome
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from reconciler.records.kubernetes import encode_fleet_state
from reconciler.records.times import rfc3339


def to_remember(
    snapshot: Snapshot, plan: Plan, outcomes: Iterable[Outcome]
) -> dict[str, str | None]:
    """Annotations that differ from those that the snapshot shows; empty in a dry run.

    Args:
        snapshot: What the plan was made from.
        plan: Its `memories` are what holds after this cycle.
        outcomes: Pods that the rescheduler moved begin its pause afresh.
    """
    done = tuple(outcomes)
    if any(each.kind == "dry-run" for each in done):
        return {}
    annotations: dict[str, str | None] = {}
    state = encode_fleet_state(plan.memories)
    if state != encode_fleet_state(snapshot.cluster.memories):
        annotations[FLEET_STATE] = state
    if any(_moved_by_rescheduler(each) for each in done):
        annotations[LAST_DRAIN] = rfc3339(snapshot.at)
    return annotations


def _moved_by_rescheduler(outcome: Outcome) -> bool:
    action = outcome.action
    return (
        outcome.kind == "applied"
        and action.policy == "spot-reschedule"
        and isinstance(action, EvictPod | DeletePod)
    )
