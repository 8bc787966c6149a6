"""What a plan does: the targets that it changes, the places of pods, the nodes that go."""

from reconciler.model.actions import SetCapacity, TaintNode, TerminateInstance
from reconciler.model.ids import InstanceId, NodeName
from reconciler.model.plan import Plan


def _calls(made: Plan) -> list[SetCapacity]:
    return [a for a in made.actions if isinstance(a, SetCapacity)]


def raises(made: Plan) -> dict[tuple[str, str], int]:
    """Fleet and region to target."""
    return {(a.fleet, a.region): a.to_capacity for a in _calls(made)}


def raised(made: Plan) -> list[tuple[str, int, int]]:
    """The fleets whose targets change, from and to."""
    return [(a.fleet, a.from_capacity, a.to_capacity) for a in _calls(made)]


def new_targets(made: Plan) -> list[int]:
    """The targets that it sets."""
    return [a.to_capacity for a in _calls(made)]


def bought(made: Plan) -> int:
    """How many more nodes it asks for."""
    return sum(a.to_capacity - a.from_capacity for a in _calls(made))


def places(made: Plan) -> dict[str, tuple[object, ...]]:
    """Pod to its place."""
    return {
        p.pod.name: (p.node,) if p.node else (p.fleet, p.launching, p.new_node)
        for p in made.placements
    }


def drained(made: Plan) -> list[NodeName]:
    """The nodes whose drains it begins, and those that it marks."""
    return [a.node for a in made.actions if isinstance(a, TaintNode)]


def ended(made: Plan) -> list[InstanceId]:
    """The instances that it ends."""
    return [a.instance for a in made.actions if isinstance(a, TerminateInstance)]
