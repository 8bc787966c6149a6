"""The spot rescheduler leaves pods alone that prefer on-demand nodes (docs/spot-rescheduler.md)."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.model.actions import DO_NOT_DISRUPT, UNNEEDED_TAINT, UntaintNode, begins_drain
from reconciler.model.cluster import PodPreference, Preference, Taint
from reconciler.model.frozen import FrozenMap
from reconciler.model.selectors import NodeSelectorTerm, Requirement
from reconciler.planner.disruption_settings import NodeLabel, SpotRescheduler
from tests.builders import HOSTNAME, make_node, make_settings, near
from tests.unit.planner.disruption.scale_in.scene import make_scene_fleet, on, planned, unneeded

RULES = SpotRescheduler(
    on_demand=NodeLabel(key="lifecycle", value="OnDemand"),
    spot=NodeLabel(key="lifecycle", value="Ec2Spot"),
)
TAINT = Taint(key="lifecycle", value="OnDemand", effect="PreferNoSchedule")
SPOT = make_scene_fleet(name="spot", utilization_threshold=0.0)
ON_DEMAND = make_scene_fleet(name="on-demand", spot=False, utilization_threshold=0.0)
WANTED = Requirement(key="lifecycle", operator="In", values=("OnDemand",))
PREFERS_ON_DEMAND = (Preference(weight=100, term=NodeSelectorTerm(expressions=(WANTED,))),)
KEPT_APART = (PodPreference(weight=-100, term=near(HOSTNAME, app="web")),)
BOTH = {"node_preferences": PREFERS_ON_DEMAND, "pod_preferences": KEPT_APART}


@pytest.mark.parametrize(
    ("taints", "soft", "goes"),
    [
        pytest.param((), {}, True, id="no preference"),
        pytest.param((), {"node_preferences": PREFERS_ON_DEMAND}, False, id="no taint"),
        pytest.param((TAINT,), {"node_preferences": PREFERS_ON_DEMAND}, True, id="taint"),
        pytest.param((TAINT,), BOTH, False, id="two preferences, more than the taint"),
    ],
)
def test_pod_that_prefers_another_on_demand_node_stays(
    *, taints: tuple[Taint, ...], soft: dict[str, Any], goes: bool
) -> None:
    """It was evicted from one on-demand node after the other, and came to the next."""
    fleet = replace(ON_DEMAND, taints=taints)
    labels = FrozenMap({"app": "web"})
    made = planned(
        make_settings(fleet, SPOT, spot_rescheduler=RULES),
        *(make_node(name, fleet) for name in "ab"),
        make_node("s", SPOT),
        on("a", "web-0", cpu="500m", labels=labels, **soft),
        on("s", "web-1", cpu="500m", labels=labels),
        on("b", "kept", cpu="1", annotations=FrozenMap({DO_NOT_DISRUPT: "true"})),
    )
    assert [action.node for action in made.actions if begins_drain(action)] == (
        ["a"] if goes else []
    )
    codes = [each.code for each in made.kept if each.node == "a"]
    assert codes == ([] if goes else ["not-preferred"])


def test_node_that_was_emptied_is_no_less_preferred_for_having_two_taints() -> None:
    """The on-demand node that had been emptied last took the pods of the next one."""
    fleet = replace(ON_DEMAND, taints=(TAINT,))
    ours = Taint(key=UNNEEDED_TAINT, value="scale-in", effect="PreferNoSchedule")
    labels = FrozenMap({"app": "web"})
    made = planned(
        make_settings(fleet, SPOT, spot_rescheduler=RULES),
        make_node("a", fleet),
        unneeded("b", fleet, 60, taints=(TAINT, ours)),
        make_node("s", SPOT),
        on("a", "web-0", cpu="500m", labels=labels, **BOTH),
        on("s", "web-1", cpu="500m", labels=labels),
    )
    assert [action.node for action in made.actions if begins_drain(action)] == []
    assert [each.code for each in made.kept if each.node == "a"] == ["not-preferred"]


@pytest.mark.parametrize(
    ("minimum", "goes"), [pytest.param(0, ["a"], id="left alone"), pytest.param(1, [], id="needed")]
)
def test_node_that_loses_our_soft_taint_when_another_is_emptied_counts_without_it(
    minimum: int, goes: list[str]
) -> None:
    """Two on-demand nodes without a taint of their own gave each other their pods without end.

    One that drains is none that the minimum may count: the idle one is needed meanwhile.
    """
    fleet = replace(ON_DEMAND, min_capacity=minimum)
    ours = Taint(key=UNNEEDED_TAINT, value="scale-in", effect="PreferNoSchedule")
    made = planned(
        make_settings(fleet, SPOT, spot_rescheduler=RULES),
        make_node("a", fleet),
        unneeded("idle", fleet, 60, taints=(ours,)),
        make_node("s", SPOT),
        on("a", "web-0"),
        on("s", "web-1"),
    )
    assert [action.node for action in made.actions if begins_drain(action)] == goes
    assert not [action for action in made.actions if isinstance(action, UntaintNode)]
    codes = [each.code for each in made.kept if each.node == "a"]
    assert codes == ([] if goes else ["not-preferred"])
