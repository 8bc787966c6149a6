"""Terminates instances: the last checks, then one call of the port (docs/scale-in.md)."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from reconciler.executor.rate_limited_ports import RateLimitedCloud, RateLimitedPorts
from reconciler.model.actions import Precondition, TerminateInstance
from reconciler.model.errors import NotFound, PortError, TerminationProtected, error_name
from reconciler.model.fleet import FLEET_TAG, Instance
from reconciler.model.ids import FleetId, Region
from reconciler.model.outcome import Outcome, OutcomeKind, kind_of_error
from reconciler.planner.fleets.instances.stuck import NodesByInstance

End = tuple[OutcomeKind, str, str]
"""The kind of outcome, the detail for people, and the class of the error."""
Targets = dict[tuple[Region, FleetId], int]
"""By fleet: the target that this plan has set so far."""
Ends = dict[TerminateInstance, End]
ENDS_EMPTY: Final[frozenset[Precondition]] = frozenset({"empty", "orphan"})
"""Preconditions under which no counted pod may run on the node."""
DONE: End = ("applied", "", "")
DONE_ALREADY: End = ("already-done", "", "")


def end_together(
    actions: Sequence[TerminateInstance],
    ports: RateLimitedPorts,
    monotonic_seconds: Callable[[], float],
    targets: Targets,
) -> Iterator[Outcome]:
    """Terminate instances of one fleet, all with or all without lowering its target.

    The target is lowered once, by as many as pass the last check; the provider orders its calls.
    `targets` has the targets that this plan has set so far. A target that is neither one of these
    nor the one that the plan is based on was set by another writer, or by a call whose reply was
    lost; then a new plan is needed.
    """
    began = monotonic_seconds()
    ends: Ends = {}
    ready, instances = _alive(actions, ports, ends)
    ready = _still_stuck(ready, instances, ports, ends)
    ready = [e for e in ready if _is_lost(e, ports, ends) and _is_free(e, ports, ends)]
    if ready:
        ends.update(_end(ready, ports.cloud(ready[0].provider), targets))
    seconds = monotonic_seconds() - began
    for action in actions:
        kind, detail, error = ends[action]
        yield Outcome(action=action, kind=kind, detail=detail, error=error, seconds=seconds)


def _of(error: PortError) -> End:
    return kind_of_error(error), str(error), error_name(error)


def _refused(why: str) -> End:
    return "refused", why, "Refused"


def _alive(
    actions: Sequence[TerminateInstance], ports: RateLimitedPorts, ends: Ends
) -> tuple[list[TerminateInstance], Sequence[Instance]]:
    """Return the actions whose instance is alive, and all instances; add the other outcomes."""
    first = actions[0]
    try:
        instances = ports.cloud(first.provider).instances(
            first.region, [action.instance for action in actions]
        )
    except PortError as error:
        ends.update(dict.fromkeys(actions, _of(error)))
        return [], ()
    alive = {instance.id: instance for instance in instances if not instance.gone}
    ends.update({action: DONE_ALREADY for action in actions if action.instance not in alive})
    left = [action for action in actions if action.instance in alive]
    for terminate_instance in left:
        if not _is_of_its_fleet(alive[terminate_instance.instance], terminate_instance):
            ends[terminate_instance] = _refused(
                f"{terminate_instance.instance} is not of fleet {terminate_instance.fleet_id}"
            )
        elif alive[terminate_instance.instance].protected:
            ends[terminate_instance] = _refused(
                f"{terminate_instance.instance} is protected from scale-in, or in standby"
            )
    return [each for each in left if each not in ends], instances


def _is_of_its_fleet(instance: Instance, action: TerminateInstance) -> bool:
    """Return whether an instance is of the fleet, by EC2 or our tag; for an orphan only by EC2."""
    if instance.fleet_id is None and action.precondition != "orphan":
        return instance.tags.get(FLEET_TAG) == action.fleet
    return instance.fleet_id == action.fleet_id


def _still_stuck(
    actions: Sequence[TerminateInstance],
    instances: Sequence[Instance],
    ports: RateLimitedPorts,
    ends: Ends,
) -> list[TerminateInstance]:
    """Return the actions, without those whose instance has a healthy node by now.

    Such an instance joined since, or the plan was based on an incomplete or older list. One call
    reads all nodes.
    """
    asked = [action for action in actions if _is_taken_for_dead(action)]
    if not asked:
        return list(actions)
    try:
        nodes = ports.cluster.nodes()
    except PortError as error:
        ends.update({terminate_instance: _of(error) for terminate_instance in asked})
        return [action for action in actions if action not in ends]
    found, of_instance = (
        {instance.id: instance for instance in instances},
        NodesByInstance(nodes, instances),
    )
    ready = {node.name for node in nodes if node.ready}
    for each in asked:
        if each.node is None and of_instance.of(found[each.instance]) is not None:
            ends[each] = _refused(f"{each.instance} is a node by now")
        elif each.node in ready:
            ends[each] = _refused(f"{each.node} is Ready again")
    return [action for action in actions if action not in ends]


def _is_taken_for_dead(action: TerminateInstance) -> bool:
    return action.node is None or action.precondition == "not-ready"


def _is_lost(action: TerminateInstance, ports: RateLimitedPorts, ends: Ends) -> bool:
    """Return whether an orphan's fleet is still gone; other instances are not checked.

    An answer without the fleet is not proof, so the fleet is read by its id right before the
    termination. A fleet of another type, or without our tags, is there too.
    """
    if action.precondition != "orphan":
        return True
    try:
        state = ports.cloud(action.provider).fleet_state(action.region, action.fleet_id)
    except NotFound:
        return True
    except PortError as error:
        ends[action] = _of(error)
        return False
    if state.startswith("deleted") or state == "failed":
        return True
    ends[action] = _refused(f"its fleet {action.fleet_id} is {state}")
    return False


def _is_free(action: TerminateInstance, ports: RateLimitedPorts, ends: Ends) -> bool:
    """Return whether no counted pod is on the node; if one is, add the outcome."""
    # Pods on a node that does not answer cannot be evicted: they are replaced together with it.
    if action.node is None or action.precondition not in ENDS_EMPTY:
        return True
    try:
        counted = ports.cluster.counted_pods_on(action.node)
    except PortError as error:
        ends[action] = _of(error)
        return False
    remaining = [pod for pod in counted if pod not in action.stuck_terminating]
    if remaining:
        ends[action] = _refused(f"{action.node}: {remaining[0]} runs there now")
    return not remaining


def _end(ready: Sequence[TerminateInstance], cloud: RateLimitedCloud, targets: Targets) -> Ends:
    first = ready[0]
    place = (first.region, first.fleet_id)
    try:
        lowered = cloud.terminate(
            first.region,
            first.fleet_id,
            sorted({terminate_instance.instance for terminate_instance in ready}),
            lower_target=first.decrement,
            expected_target=targets.get(place, first.from_capacity),
        )
    except TerminationProtected as error:
        lowered, protected, refusal = error.target, error.instances, _of(error)
    except PortError as error:
        return dict.fromkeys(ready, _of(error))
    else:
        protected, refusal = frozenset(), DONE
    if lowered is not None:
        targets[place] = lowered
    return {
        terminate_instance: refusal if terminate_instance.instance in protected else DONE
        for terminate_instance in ready
    }
