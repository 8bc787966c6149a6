"""Ending instances: the last check, then the lower target, then the end (behaviour, section 5)."""

from collections.abc import Callable, Iterator, Sequence

from reconciler.executor.sides import Sides
from reconciler.model.actions import TerminateInstance
from reconciler.model.errors import PortError
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
    ready = _living(actions, sides, ends)
    ready = [each for each in ready if _is_free(each, sides, ends)]
    if ready:
        ends.update(dict.fromkeys(ready, _end(ready, sides.cloud(ready[0].provider))))
    seconds = monotonic_seconds() - began
    for action in actions:
        kind, detail = ends[action]
        yield Outcome(action=action, kind=kind, detail=detail, seconds=seconds)


def _living(
    actions: Sequence[TerminateInstance], sides: Sides, ends: Ends
) -> list[TerminateInstance]:
    """Those whose instance lives; the ends of all others are noted. One call for all."""
    first = actions[0]
    try:
        found = sides.cloud(first.provider).instances(
            first.region, [each.instance for each in actions]
        )
    except PortError as error:
        ends.update(dict.fromkeys(actions, (kind_of_error(error), str(error))))
        return []
    alive = {each.id for each in found if not each.gone}
    ends.update({each: ("already-done", "") for each in actions if each.instance not in alive})
    return [each for each in actions if each.instance in alive]


def _is_free(action: TerminateInstance, sides: Sides, ends: Ends) -> bool:
    """Whether nothing that counts holds the node; if something does, that end is noted."""
    # Pods of a node that does not answer cannot be evicted: they are replaced together with it.
    if action.node is None or action.policy == "stuck-instance":
        return True
    try:
        remaining = sides.cluster.counted_pods_on(action.node)
    except PortError as error:
        ends[action] = kind_of_error(error), str(error)
        return False
    if remaining:
        ends[action] = "refused", f"{action.node}: {remaining[0]} runs there now"
    return not remaining


def _end(ready: Sequence[TerminateInstance], cloud: Cloud) -> tuple[OutcomeKind, str]:
    first = ready[0]
    try:
        if first.decrement:
            target = cloud.fleet(first.region, first.fleet_id).target_capacity
            lower = max(0, target - len({each.instance for each in ready}))
            cloud.set_target_capacity(first.region, first.fleet_id, lower)
        cloud.terminate_instances(first.region, [each.instance for each in ready])
    except PortError as error:
        return kind_of_error(error), str(error)
    return "applied", ""
