"""Laws that every plan obeys, over random clusters."""

from hypothesis import given

from reconciler.planner.planner import plan
from tests.properties.checker import faults_of
from tests.properties.strategies import Case, cases


@given(case=cases())
def test_plan_of_any_cluster_keeps_every_promise_by_kube_scheduler_rules(case: Case) -> None:
    """Nodes would be bought that the pods they are for can never bind to."""
    made = plan(case.snapshot, case.settings)
    assert faults_of(case.snapshot, case.settings, made) == []
