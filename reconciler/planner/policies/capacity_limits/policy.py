"""min_capacity is bought before demand, so that demand can use it."""

from reconciler.planner.cycle import Cycle


def propose(cycle: Cycle) -> None:
    """Raise every fleet below its minimum; the new nodes take demand before more is bought.

    The minimum is held against the target without draining nodes, which are on their way out.
    A target above the maximum that EC2 has not served yet is taken back.
    """
    for status in cycle.inventory.fleets:
        if status.state == "missing" or status.unavailable:
            continue
        short = status.min - (cycle.targets[status.key] - len(status.draining))
        if short > 0:
            limit = status.max if status.max is not None else status.min
            target = min(cycle.targets[status.key] + short, max(limit, status.min))
            first = cycle.sim.add_row(
                cycle.offers[status.key].row, target - cycle.targets[status.key]
            )
            for row in range(first, cycle.sim.rows):
                cycle.seat_new_row(row, status.key)
            cycle.targets[status.key] = target
        elif status.max is not None and status.current > max(status.max, status.joined):
            cycle.targets[status.key] = max(status.max, status.joined)
