"""Planning that fails on some tenants' pods goes on for all others (docs/failures.md)."""

from collections.abc import Iterable
from typing import Any

import pytest

from reconciler.model.cluster import Pod
from reconciler.model.errors import InvariantViolated
from reconciler.model.plan import Plan
from reconciler.planner.explain.explain import explain
from reconciler.planner.placement.classes import ClassTable
from reconciler.planner.plan_despite_failures import TRIES_MAX, plan_for_all
from reconciler.planner.planner import ORDER, plan
from tests.builders import (
    make_cloud_of,
    make_fleet,
    make_fleet_settings,
    make_node,
    make_pod,
    make_settings,
    make_snapshot,
)
from tests.unit.planner.placed import raises

SETTINGS = make_settings(make_fleet_settings(cpu=4))
MANY = [f"team-{number:03}" for number in range(64)]


def waiting(*namespaces: str) -> list[Pod]:
    """A pod that waits in each."""
    return [make_pod("p", namespace=namespace, cpu=1) for namespace in namespaces]


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> dict[str, Exception]:
    """The namespaces on whose pending pods planning fails, and how."""
    errors: dict[str, Exception] = {}
    real = ClassTable.__init__

    def init(table: ClassTable, pods: Iterable[Pod], *rest: Any) -> None:
        found = list(pods)
        for pod in found:
            if pod.key.namespace in errors and pod.node_name is None:
                raise errors[pod.key.namespace]
        real(table, found, *rest)

    monkeypatch.setattr(ClassTable, "__init__", init)
    return errors


def served(made: Plan) -> set[str]:
    """Namespaces whose pods have a place."""
    return {placement.pod.namespace for placement in made.placements}


def left_out(made: Plan) -> set[str]:
    """Namespaces whose pods are left out."""
    refused = [pod for pod in made.unplaceable if pod.reasons[0].code == "planning-failed"]
    return {pod.pod.namespace for pod in refused}


def test_plan_is_the_usual_one_where_nothing_fails() -> None:
    """What is there for bugs must change nothing without one."""
    snapshot = make_snapshot(*waiting("a", "b"))
    assert plan_for_all(snapshot, SETTINGS) == plan(snapshot, SETTINGS)


@pytest.mark.parametrize("bad", [["team-000"], ["team-063"], ["team-007", "team-008", "team-040"]])
def test_all_others_are_served(failing: dict[str, Exception], bad: list[str]) -> None:
    """One tenant's pods would stop the plan for all until somebody deletes them."""
    failing |= {name: IndexError("index 4 is out of bounds") for name in bad}
    made = plan_for_all(make_snapshot(*waiting(*MANY)), SETTINGS)
    assert left_out(made) == set(bad)
    assert served(made) == set(MANY) - set(bad)
    (detail,) = {u.reasons[0].detail for u in made.unplaceable}
    assert "IndexError: index 4 is out of bounds" in detail
    assert "report it with a snapshot" in detail


def test_same_snapshot_gives_the_same_plan(failing: dict[str, Exception]) -> None:
    """Two replicas would go back and forth."""
    failing["team-005"] = RuntimeError("x")
    snapshot = make_snapshot(*waiting(*MANY))
    assert plan_for_all(snapshot, SETTINGS) == plan_for_all(snapshot, SETTINGS)


def test_search_ends_however_many_fail(failing: dict[str, Exception]) -> None:
    """Every try is a plan."""
    failing |= {name: MemoryError() for name in MANY[::2]}
    calls = []
    real = ClassTable.__init__

    def counted(table: ClassTable, *given: Any) -> None:
        calls.append(1)
        real(table, *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ClassTable, "__init__", counted)
        made = plan_for_all(make_snapshot(*waiting(*MANY)), SETTINGS)
    assert len(calls) <= TRIES_MAX + 1
    assert left_out(made) >= set(MANY[::2])
    assert served(made) == set(MANY) - left_out(made)


def fail(*_: object) -> None:
    """What no test foresaw."""
    raise ZeroDivisionError("broken")


def test_pods_are_served_while_planning_what_may_go_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """What saves money would keep pods from their nodes."""
    monkeypatch.setattr("reconciler.planner.planner.ORDER", (*ORDER, fail))
    (fleet,) = SETTINGS.fleets()
    node = make_node("n", fleet)
    pods = [make_pod("r", node="n", cpu=4), *waiting("a")]
    cloud = make_cloud_of([node], make_fleet(fleet, 1))
    snapshot = make_snapshot(node, *pods, cloud=cloud)
    made = plan_for_all(snapshot, SETTINGS)
    assert served(made) == {"a"}
    assert raises(made) != {}
    assert "ZeroDivisionError: broken" in made.no_removals_because
    (kept,) = made.kept
    assert (kept.node, kept.code) == ("n", "planning-failed")
    assert "planning what may go fails: ZeroDivisionError: broken" in kept.detail
    (told,) = explain(snapshot, SETTINGS, made, nodes=["n"]).nodes
    assert "planning what may go fails" in told.because


def test_plan_says_that_nothing_goes_where_no_node_could_say_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Instances that never join are not ended either, and there may be no node beside them."""
    monkeypatch.setattr("reconciler.planner.planner.ORDER", (*ORDER, fail))
    snapshot = make_snapshot(*waiting("a"))
    made = plan_for_all(snapshot, SETTINGS)
    assert made.no_removals_because.startswith("planning what may go fails: ZeroDivisionError")
    (told,) = explain(snapshot, SETTINGS, made, pods=["a/p"]).pods
    assert told.verdict == "placed"


def test_error_that_no_pending_pod_leads_to_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that acts on nothing it knows must not look well."""
    monkeypatch.setattr(ClassTable, "__init__", fail)
    with pytest.raises(ZeroDivisionError, match="broken"):
        plan_for_all(make_snapshot(*waiting("a")), SETTINGS)


def test_check_of_our_own_is_raised(failing: dict[str, Exception]) -> None:
    """What a check refuses must not be tried in parts until it passes."""
    failing["a"] = InvariantViolated("the planner", "a rule is broken")
    with pytest.raises(InvariantViolated):
        plan_for_all(make_snapshot(*waiting("a", "b")), SETTINGS)


def test_explanation_says_that_planning_fails(failing: dict[str, Exception]) -> None:
    """The tenant sees why the pod waits, the others are explained as ever."""
    failing["a"] = IndexError("x")
    snapshot = make_snapshot(*waiting("a", "b"))
    made = plan_for_all(snapshot, SETTINGS)
    bad, other = explain(snapshot, SETTINGS, made, pods=["a/p", "b/p"]).pods
    assert bad.verdict == "unplaceable"
    assert "it is of a namespace on whose pods planning fails: IndexError: x" in bad.because
    assert other.verdict == "placed"
