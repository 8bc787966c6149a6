"""Rolling updates of nodes with more pods of a PodDisruptionBudget than it allows to move."""

from dataclasses import replace

from reconciler.model.actions import DRAIN_PROGRESS, DRAIN_STARTED, EvictPod, TaintNode, UntaintNode
from reconciler.model.cluster import Pod, PodDisruptionBudget
from reconciler.model.text import rfc3339
from tests.builders import ago, make_node, selecting
from tests.unit.planner.disruption.scale_in.scene import annotations_set, kept, on, planned, told
from tests.unit.planner.disruption.scale_in.scene import unneeded as little_used
from tests.unit.planner.disruption.updated_fleet import FLEET, TAINT, made_of, marked, node

BUDGET = PodDisruptionBudget(
    namespace="ns", name="w", selector=selecting(app="w"), disruptions_allowed=1
)
NONE_NOW = replace(BUDGET, disruptions_allowed=0)


def replicas(count: int) -> list[Pod]:
    """So many pods of the budget on the old node."""
    return [on("a", f"w{n}", "100m", labels={"app": "w"}) for n in range(count)]


def test_node_that_takes_five_rounds_is_replaced() -> None:
    """Five replicas under `maxUnavailable: 1` on one node, and the update never ended."""
    made = made_of(node("a"), *replicas(5), budgets=(BUDGET,))
    assert marked(made) == {"a": "8/1"}


def test_its_drain_begins_with_what_the_budget_allows() -> None:
    """The others follow one by one, as the new replicas are healthy."""
    made = made_of(node("a", mark=1), node("n", 300), *replicas(5), new="n", budgets=(BUDGET,))
    assert told(made, TaintNode) == ["a"]
    assert told(made, EvictPod) == ["w0"]
    assert ("a", "drain-progress", "2026-01-31T12:00:00Z/5/5/0") in annotations_set(made)


def test_its_drain_has_the_time_of_all_rounds() -> None:
    """Four minutes for each: after the time of three rounds it would be given back."""
    notes = {DRAIN_PROGRESS: "2026-01-31T11:59:30Z/5/2/0", DRAIN_STARTED: rfc3339(ago(900))}
    old = node("a", mark=1, taints=(TAINT,), annotations=notes)
    made = made_of(old, node("n", 1200), *replicas(2), new="n", budgets=(BUDGET,))
    assert told(made, UntaintNode) == []
    assert told(made, EvictPod) == ["w0"]


def test_budget_that_allows_nothing_keeps_the_node() -> None:
    """No round can begin."""
    made = made_of(node("a"), *replicas(5), budgets=(NONE_NOW,))
    assert marked(made) == {}
    assert kept(made)["a"] == "budget"


def test_node_that_is_only_little_used_may_take_three_rounds() -> None:
    """Twenty minutes without new pods are not worth the saving."""
    nodes = (little_used("a", FLEET), make_node("b", FLEET))
    made = planned(FLEET, *nodes, *replicas(5), on("b", "b-own", "2"), budgets=(BUDGET,))
    assert told(made, TaintNode) == []
    assert kept(made)["a"] == "budget"
