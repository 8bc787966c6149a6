"""Short-lived nodes: young nodes that become empty by themselves when their Jobs end.

After a burst of Jobs there is much room on the nodes that were bought for it. Moving the pods of a
well-used node there seems to save that node. But the pods keep nodes that would have left a few
minutes later, and have to move once more before those can leave.
"""

from collections.abc import Container
from datetime import timedelta

from reconciler.model.cluster import Node
from reconciler.model.text import counted_noun
from reconciler.planner.disruption.blocker import Blocker
from reconciler.planner.disruption.candidate import Candidate
from reconciler.planner.disruption.disruption_context import DisruptionContext
from reconciler.planner.disruption.drains.idleness import counted
from reconciler.planner.disruption.saving import SAVING_PERCENT_MIN
from reconciler.planner.disruption.simulator.drain_simulator import DrainSimulator
from reconciler.planner.disruption.simulator.relocation import Relocation
from reconciler.planner.money import NANO
from reconciler.planner.view import ClusterView

LASTS_FROM = timedelta(hours=1)
"""A node older than this does not count as short-lived: a saving is reckoned over an hour, and Jobs
that have followed each other for an hour may continue to."""


class ShortLivedNodes:
    """Decides whether a move that is to save money would keep nodes that cost more.

    Args:
        context: The run.
        simulator: The what-if cluster.
    """

    def __init__(self, context: DisruptionContext, simulator: DrainSimulator) -> None:
        self._view = context.view
        self._simulator = simulator
        self._price_of_row = {
            self._view.row_of[node.name]: self._view.offers[key].nano_usd_per_hour
            for node, key in context.open_nodes
            if _is_short_lived(self._view, node)
            and self._view.offers[key].priced
            and context.removal_quota.allows(key, node.name)
        }

    def blocker(
        self, candidate: Candidate, moves: Relocation, receiving: Container[int]
    ) -> Blocker | None:
        """Return why the pods that were just moved should stay; None if the move saves money.

        Args:
            candidate: The node that they left.
            moves: The moves.
            receiving: Rows that already receive pods of other nodes: they stay in any case.
        """
        if candidate.policy != "consolidation" or candidate.status.settings.departing:
            return None
        if not self._price_of_row:
            return None
        kept = {*moves.rows, *self._simulator.spread_rows(moves)} & self._price_of_row.keys()
        prices = [self._price_of_row[row] for row in kept if row not in receiving]
        price = self._view.offers[candidate.status.key].nano_usd_per_hour
        if not prices or sum(prices) * 100 <= price * (100 - SAVING_PERCENT_MIN):
            return None
        nodes, cost = counted_noun(len(prices), "node"), sum(prices) / NANO
        because = (
            f"its pods would move to {nodes} at {cost:.4g} USD/h with only pods that run to "
            "completion, and that would be removed when these have ended"
        )
        return Blocker("consolidation", because)


def _is_short_lived(view: ClusterView, node: Node) -> bool:
    """Return whether it is young, and every counted pod on it runs to completion."""
    if node.created_at is None or view.at - node.created_at >= LASTS_FROM:
        return False
    pods = counted(view.pods_on.get(node.name, ()))
    return bool(pods) and all(pod.runs_to_completion for pod in pods)
