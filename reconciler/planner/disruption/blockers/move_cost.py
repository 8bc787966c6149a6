"""The cost of moving pods: a voluntary move must save more than its cost within an hour.

`scale_in.move_cost_usd` is the price of moving one pod: a restart, cold caches, lost connections.
It is compared with what the move saves per hour, so that pods are not restarted to save a cent, and
so that of two nodes that save the same the one with fewer pods to move goes first.
"""

from collections.abc import Collection
from decimal import Decimal

from reconciler.model.cluster import Pod
from reconciler.model.text import counted_noun
from reconciler.planner.disruption.blocker import Blocker
from reconciler.planner.money import NANO


def move_cost_nano_usd(pods: Collection[Pod], move_cost_usd: Decimal) -> int:
    """Return what moving the pods costs, in nano-USD."""
    return int(move_cost_usd * NANO) * len(pods)


def moves_rank(pods: Collection[Pod]) -> tuple[int, int, int]:
    """Return the sort key of nodes that save the same: fewer pods to move first.

    Of equally many pods those of lower priority come first, then those that end sooner.
    """
    priority = sum(pod.spec.priority for pod in pods if pod.spec.priority > 0)
    grace_seconds = sum(pod.spec.termination_grace_seconds for pod in pods)
    return len(pods), priority, int(grace_seconds)


def not_worth_moving(
    pods: Collection[Pod], nano_usd_per_hour: int, move_cost_usd: Decimal
) -> Blocker | None:
    """Return a blocker if moving the pods costs more than it saves in an hour; None if it pays.

    Args:
        pods: The pods that would be moved.
        nano_usd_per_hour: The saving, in nano-USD per hour.
        move_cost_usd: The cost of moving one pod, in USD.
    """
    cost = move_cost_nano_usd(pods, move_cost_usd)
    if cost <= nano_usd_per_hour:
        return None
    moves = counted_noun(len(pods), "move")
    return Blocker(
        "move-cost",
        f"{moves} at {move_cost_usd} USD would cost more than the "
        f"{nano_usd_per_hour / NANO:.4g} USD that its end saves in an hour",
    )


def moves_and_saving(pods: Collection[Pod], nano_usd_per_hour: int, move_cost_usd: Decimal) -> str:
    """Return the cost of the moves and the saving in words, as a part of `because`."""
    cost = move_cost_nano_usd(pods, move_cost_usd) / NANO
    moves = counted_noun(len(pods), "move")
    return f"saves {nano_usd_per_hour / NANO:.4g} USD/h for {moves} counted as {cost:.4g} USD"
