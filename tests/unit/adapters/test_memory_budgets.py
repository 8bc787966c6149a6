"""What PodDisruptionBudgets of the in-memory world allow while pods go."""

from typing import Any

import pytest

from reconciler.adapters.memory import BudgetShape, MemoryWorld
from tests.builders import NOW, make_node, make_pod, selecting


@pytest.mark.parametrize("limit", [{"max_unavailable": 1}, {"max_unavailable": "25%"},
                                   {"min_available": "75%"}])  # fmt: skip
@pytest.mark.parametrize("kind", ["StatefulSet", "ReplicaSet", "Rollout"])
def test_pod_that_goes_takes_what_the_budget_allows_until_another_is_ready(
    kind: str, limit: dict[str, Any]
) -> None:
    """Two pods of a StatefulSet went at once: the first counted as if the set were smaller."""
    world = MemoryWorld(cluster="c", start=NOW)
    world.add_node(make_node("n", unschedulable=True))
    world.add_budget(BudgetShape(namespace="ns", name="db", selector=selecting(app="db"), **limit))
    keys = [
        world.add_pod(make_pod(f"db-{n}", node="n", owner=kind, labels={"app": "db"}, ready=True))
        for n in range(4)
    ]
    (before,) = world.objects.budgets.now()
    assert before.disruptions_allowed == 1
    world.stop_pod(keys[0])
    (after,) = world.objects.budgets.now()
    assert (after.current_healthy, after.desired_healthy, after.disruptions_allowed) == (3, 3, 0)
