"""Budgets counted over a whole plan."""

from typing import Any

import pytest

from reconciler.model.cluster import Pod, PodDisruptionBudget
from reconciler.model.frozen import Labels
from reconciler.model.selectors import LabelSelector
from reconciler.planner.pod_disruption_budgets import BudgetLedger
from tests.builders import make_pod, selecting
from tests.unit.planner.counted_lines import CountedLine


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
    assert not ledger.coverage.readable(web("x"))
    assert ledger.coverage.readable(web("x", namespace="other"))


def lines(number: int, count: int, **labels: str) -> LabelSelector:
    """A selector that has so many lines, which all hold."""
    absent = [CountedLine(key=f"k{number}-{j}", operator="DoesNotExist") for j in range(count)]
    return LabelSelector(match_labels=Labels(labels), match_expressions=tuple(absent))


def test_labels_are_compared_with_a_limited_number_of_lines() -> None:
    """1,500 budgets of 256 lines made each plan take 30 s; their pods stay where they are."""
    many = [budget(0, f"b{i:04}", selector=lines(i, 100)) for i in range(50)]
    ledger = BudgetLedger([*many, budget(3, "c", namespace="other")])
    CountedLine.compared = 0
    assert not ledger.coverage.readable(web("x"))
    assert ledger.coverage.of(web("x")) == ()
    assert CountedLine.compared == 0
    assert ledger.coverage.of(web("x", namespace="other")) == (50,)
    few = BudgetLedger([budget(0, f"b{i:04}", selector=lines(i, 100)) for i in range(10)])
    assert len(few.coverage.of(web("x"))) == 10


def test_budgets_that_have_a_label_in_common_are_distinguished_by_another() -> None:
    """The budgets of a thousand releases would all be compared with the pods of each."""
    selectors = [lines(i, 20, app=f"a{i}", by="helm") for i in range(1000)]
    ledger = BudgetLedger([budget(0, f"b{i:04}", selector=s) for i, s in enumerate(selectors)])
    pod = make_pod("p", node="n", labels={"app": "a7", "by": "helm"})
    assert ledger.coverage.of(pod) == (7,)
    assert ledger.coverage.readable(pod)


def test_change_of_one_namespace_has_the_budgets_of_no_other_compared_again() -> None:
    """A tenant who changes a budget before each plan would have all pods compared again."""
    theirs = [budget(0, f"b{i}", namespace="z", selector=lines(i, 10)) for i in range(10)]
    pod = web("x", namespace="z")
    for number in range(3):
        ledger = BudgetLedger([budget(0, selector=selecting(app=f"{number}")), *theirs])
        CountedLine.compared = 0 if number == 1 else CountedLine.compared
        assert ledger.coverage.of(pod) == tuple(range(1, 11))
    assert CountedLine.compared == 0


def test_change_of_one_budget_has_pods_compared_with_that_one_only() -> None:
    """A tenant with a thousand budgets who rewrites one before each plan made it take 3 s."""
    pods = [web(f"p{i}", namespace="one-of-many") for i in range(3)]
    for number in range(3):
        names = [f"b{i}" for i in range(10)] if number != 1 else [f"b{i}" for i in range(1, 11)]
        many = [
            budget(0, name, namespace="one-of-many", selector=lines(int(name[1:]), 10))
            for name in names
        ]
        changed = budget(0, "z", namespace="one-of-many", selector=lines(100 + number, 7))
        ledger = BudgetLedger([*many, changed])
        CountedLine.compared = 0
        assert [len(ledger.coverage.of(pod)) for pod in pods] == [11] * 3
        new = (11, 2, 2)[number] - 1
        assert CountedLine.compared == len(pods) * (10 * new + 7)


def test_budgets_are_distinguished_after_a_change_as_they_would_be_at_first() -> None:
    """Numbers of an earlier plan would name budgets beside those that cover the pod."""
    pods = [web(f"p{i}", namespace="renumbered") for i in range(2)]
    first, second, third = (
        LabelSelector(match_expressions=(CountedLine(key="app", operator="In", values=values),))
        for values in (("web", "x"), ("y",), ("web", "z"))
    )
    sets = ([first, second], [second, first, first], [third, second, first], [None, third], [first])
    for selectors in sets:
        ledger = BudgetLedger(
            budget(0, f"b{i}", namespace="renumbered", selector=s) for i, s in enumerate(selectors)
        )
        covering = tuple(i for i, s in enumerate(selectors) if s in (first, third))
        assert [ledger.coverage.of(pod) for pod in pods] == [covering] * 2


@pytest.mark.parametrize(
    ("allowed", "healthy", "desired", "coming", "refused"),
    [
        pytest.param(0, 3, 3, 0, True, id="maxUnavailable 0"),
        pytest.param(0, 2, 3, 1, True, id="maxUnavailable 0 with a young pod"),
        pytest.param(0, 1, 3, 3, False, id="more come than are missing"),
        pytest.param(0, 2, 2, 1, False, id="maxUnavailable 1 with a young pod"),
        pytest.param(0, 3, 2, 0, True, id="just used up by an eviction"),
        pytest.param(0, 0, 0, 1, False, id="status without numbers"),
    ],
)
def test_budget_refuses_for_long_what_it_refuses_with_all_pods_healthy(
    allowed: int, healthy: int, desired: int, coming: int, *, refused: bool
) -> None:
    """A cheap node waited for pods that maxUnavailable 0 never lets go, while one was young."""
    ledger = BudgetLedger([budget(allowed, current_healthy=healthy, desired_healthy=desired)])
    young = [web(f"young{n}", ready=False) for n in range(coming)]
    assert ledger.refuses_for_long([web("a")], 1, ledger.covering(young)) is refused
