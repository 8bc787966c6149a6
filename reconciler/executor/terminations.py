"""Ending instances: the last check, then the lower target, then the end (behaviour, section 5)."""

from collections.abc import Callable, Iterator, Sequence

from reconciler.executor.sides import Sides
from reconciler.model.actions import TerminateInstance
from reconciler.model.errors import PortError, Refused
from reconciler.model.outcome import Outcome, OutcomeKind, kind_of_error
from reconciler.ports.cloud import Cloud

Ends = dict[TerminateInstance, tuple[OutcomeKind, str]]


def end_together(
    actions: Sequence[TerminateInstance],
    sides: Sides,
    monotonic_seconds: Callable[[], float],
) -> Iterator[Outcome]:
    """End instances of one fleet, all with or all without lowering its target.

    The target is lowered once, by as many as pass the last check, and before anything ends: a
    crash in between leaves instances too many, never one that the fleet replaces at once.
    """
    began = monotonic_seconds()
    ends: Ends = {}
    ready = [each for each in actions if _may_end(each, sides, ends)]
    if ready:
        ends.update(dict.fromkeys(ready, _end(ready, sides.cloud(ready[0].provider))))
    seconds = monotonic_seconds() - began
    for action in actions:
        kind, detail = ends[action]
        yield Outcome(action=action, kind=kind, detail=detail, seconds=seconds)


def _may_end(action: TerminateInstance, sides: Sides, ends: Ends) -> bool:
    """Whether the instance lives and nothing that counts runs on it; if not, its end is noted."""
    try:
        live = sides.cloud(action.provider).instances(action.region, [action.instance])
        if not live or live[0].gone:
            ends[action] = "already-done", ""
            return False
        if action.node is not None:
            remaining = sides.cluster.counted_pods_on(action.node)
            if remaining:
                raise Refused(action.node, f"{remaining[0]} runs there now")
    except PortError as error:
        ends[action] = kind_of_error(error), str(error)
        return False
    return True


def _end(ready: Sequence[TerminateInstance], cloud: Cloud) -> tuple[OutcomeKind, str]:
    first = ready[0]
    try:
        if first.decrement:
            target = cloud.fleet(first.region, first.fleet_id).target_capacity
            lower = max(0, target - len(ready))
            cloud.set_target_capacity(first.region, first.fleet_id, lower)
        cloud.terminate_instances(first.region, [each.instance for each in ready])
    except PortError as error:
        return kind_of_error(error), str(error)
    return "applied", ""
