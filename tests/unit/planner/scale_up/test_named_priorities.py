"""Priorities by regular expressions of names, as the ConfigMap of Cluster Autoscaler has them."""

import pytest

from reconciler.config.catalogue import load_catalogue
from reconciler.config.loader import parse_config
from reconciler.config.planning.settings import planner_settings
from reconciler.model.actions import SetCapacity
from reconciler.planner.named_priorities import NamedPriorities, priority_of
from reconciler.planner.planner import plan
from tests.builders import make_pod, make_snapshot

PRIORITIES: NamedPriorities = ((10, (".*",)), (20, ("t2.large", "^batch")), (50, ("m4",)))


@pytest.mark.parametrize(
    ("names", "priority"),
    [
        (("web-m4-a",), 50),
        (("batch-t2.large",), 20),
        (("a-batch",), 10),
        (("web", "eks-m4-asg"), 50),
        ((), 0),
        (("",), 0),
    ],
)
def test_highest_number_that_matches_anywhere_counts(names: list[str], priority: int) -> None:
    """As Cluster Autoscaler reads it; else a switch-over buys from other groups."""
    assert priority_of(names, PRIORITIES) == priority


def test_fleet_that_no_expression_names_comes_last_and_its_own_priority_wins() -> None:
    """A number beside the fleet is more precise than an expression."""
    text = """
cluster: c
regions: [us-west-2]
expander: priority
expander_priorities: {10: [small], 50: ["-large$"]}
default_sector: web
sectors: {web: {kind: cpu, fleets: [{size: small}, {size: medium}, {size: large},
  {size: xlarge, priority: 99}]}}
"""
    settings = planner_settings(parse_config(text), load_catalogue())
    found = {fleet.size: fleet.priority for fleet in settings.fleets()}
    assert found == {"small": 10, "medium": 0, "large": 50, "xlarge": 99}
    actions = plan(make_snapshot(make_pod(cpu="1")), settings).actions
    assert [a.fleet for a in actions if isinstance(a, SetCapacity)] == ["web-xlarge"]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("expression", ["(a*)*b", "(a|a)*b", ".*.*.*.*.*.*b", "(a?){50}a{50}b"])
def test_expression_with_many_ways_to_match_is_looked_for_at_once(expression: str) -> None:
    """Each command that reads the config would hang, and the loop with its Lease."""
    assert priority_of(["a" * 200], ((10, (expression,)),)) == 0
