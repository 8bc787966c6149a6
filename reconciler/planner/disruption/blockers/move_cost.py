"""What it costs to move pods: a voluntary move has to save more than that within an hour.

`scale_in.move_cost_usd` prices the move of one pod: a restart, cold caches, lost connections. The
price is compared with what the move saves per hour, so that many pods are not restarted for a
cent, and of two nodes that save the same the one with fewer pods to move goes first.
"""

from collections.abc import Collection
from decimal import Decimal

from reconciler.model.cluster import Pod
from reconciler.model.text import counted_noun
from reconciler.planner.disruption.blocker import Blocker
from reconciler.planner.money import NANO


def move_cost_nano_usd(pods: Collection[Pod], move_cost_usd: Decimal) -> int:
    """Return what moving the pods costs, in billionths of a dollar."""
    return int(move_cost_usd * NANO) * len(pods)


def moves_rank(pods: Collection[Pod]) -> tuple[int, int, int]:
    """Return the order of nodes that save the same: fewer moves first, then cheaper ones.

    Of equally many pods those of lower priority come first, then those that end sooner.
    """
    priority = sum(pod.spec.priority for pod in pods if pod.spec.priority > 0)
    grace_seconds = sum(pod.spec.termination_grace_seconds for pod in pods)
    return len(pods), priority, int(grace_seconds)


def not_worth_moving(
    pods: Collection[Pod], nano_usd_per_hour: int, move_cost_usd: Decimal
) -> Blocker | None:
    """Return a blocker when moving the pods costs more than it saves in an hour; None when it pays.

    Args:
        pods: The pods that would be moved.
        nano_usd_per_hour: What is saved.
        move_cost_usd: What the move of one pod costs.
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
    """Return what the moves cost and what they save, as a part of `because`."""
    cost = move_cost_nano_usd(pods, move_cost_usd) / NANO
    moves = counted_noun(len(pods), "move")
    return f"saves {nano_usd_per_hour / NANO:.4g} USD/h for {moves} counted as {cost:.4g} USD"
