"""Budgets counted over a whole plan."""

from typing import Any

from reconciler.model.cluster import Pod, PodDisruptionBudget
from reconciler.planner.budgets import BudgetLedger
from tests.builders import make_pod, selecting


def budget(allowed: int, name: str = "b", **changed: Any) -> PodDisruptionBudget:
    """A budget over `app=web` of namespace ns."""
    return PodDisruptionBudget(
        namespace=changed.pop("namespace", "ns"),
        name=name,
        selector=changed.pop("selector", selecting(app="web")),
        disruptions_allowed=allowed,
        **changed,
    )


def web(name: str, **changed: Any) -> Pod:
    """A pod that the budget covers."""
    return make_pod(name, node="n", labels={"app": "web"}, **changed)


def test_disruptions_are_used_up_over_the_whole_plan() -> None:
    """Two drains would each count on the same disruption."""
    ledger = BudgetLedger([budget(2)])
    assert ledger.refusal([web("a"), web("b")]) is None
    ledger.take([web("a")])
    assert ledger.refusal([web("b")]) is None
    refused = ledger.refusal([web("b"), web("c")])
    assert refused is not None
    assert "ns/b allows 1 more" in refused
    assert ledger.take_one(web("b"))
    assert not ledger.take_one(web("c"))


def test_pods_outside_the_selector_or_namespace_are_free() -> None:
    """A strict budget would stop the whole cluster."""
    ledger = BudgetLedger([budget(0)])
    assert ledger.refusal([make_pod("x", node="n"), web("y", namespace="other")]) is None
    assert ledger.refusal([web("z")]) is not None


def test_two_budgets_cover_a_pod_together() -> None:
    """The Eviction API refuses such pods, so they must be seen."""
    ledger = BudgetLedger([budget(1, "a"), budget(1, "b")])
    assert len(ledger.coverage.of(web("x"))) == 2


def test_budget_without_selector_covers_nothing() -> None:
    """An empty v1beta1 selector would stop every eviction."""
    assert BudgetLedger([budget(0, selector=None)]).coverage.of(web("x")) == ()


def test_unready_pod_is_free_only_under_always_allow() -> None:
    """A crash-looping pod would hold its node for ever, or a budget would be overdrawn."""
    always = BudgetLedger([budget(0, unhealthy_pod_eviction_policy="AlwaysAllow")])
    assert always.refusal([web("x", ready=False)]) is None
    assert always.refusal([web("x", ready=True)]) is not None
    healthy = BudgetLedger([budget(0, current_healthy=3, desired_healthy=2)])
    assert healthy.refusal([web("x", ready=False)]) is not None


def test_pod_that_is_on_its_way_out_needs_no_disruption() -> None:
    """The budget has counted it as gone already: it would be counted twice."""
    ledger = BudgetLedger([budget(0)])
    assert ledger.refusal([web("x", deleting=True), web("y", phase="Failed")]) is None
    assert ledger.refusal([web("z", phase="Pending")]) is not None


def test_unreadable_budget_makes_its_namespace_unreadable() -> None:
    """Evictions beside a budget that nobody could read might overdraw it."""
    ledger = BudgetLedger([budget(0, unreadable=True, selector=None)])
    assert not ledger.coverage.readable("ns")
    assert ledger.coverage.readable("other")
