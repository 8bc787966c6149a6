"""What a plan does for demand: the targets that it raises, and the place of every pod."""

from reconciler.model.actions import SetCapacity
from reconciler.model.plan import Plan


def raises(made: Plan) -> dict[tuple[str, str], int]:
    """Fleet and region to target."""
    return {(a.fleet, a.region): a.to_capacity for a in made.actions if isinstance(a, SetCapacity)}


def seats(made: Plan) -> dict[str, tuple[object, ...]]:
    """Pod to its place."""
    return {
        p.pod.name: (p.node,) if p.node else (p.fleet, p.launching, p.new_node)
        for p in made.placements
    }
