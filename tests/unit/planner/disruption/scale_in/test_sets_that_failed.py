"""A set that was given up is not bought again the same way (docs/scale-in.md)."""

import pytest

from reconciler.model.actions import REPLACEMENT_SET, REPLACEMENT_SET_FAILED
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import FleetKey
from reconciler.model.text import rfc3339
from reconciler.planner.disruption.drains.replacement_sets import encode
from tests.builders import HOME, ago, make_fleet_settings, make_node
from tests.unit.planner.disruption.scale_in.consolidation import SMALL, planned, raised
from tests.unit.planner.disruption.scale_in.scene import annotations_set, on

MID = make_fleet_settings("mid", cpu=8, memory="32Gi", price="0.16")


@pytest.mark.parametrize(("count", "next_one"), [(0, 1), (2, 3)])
def test_new_nodes_of_a_set_that_failed_are_kept_from_the_next_one_too(
    count: int, next_one: int
) -> None:
    """The node that was to leave is drained by the next set, and what it knew is gone with it."""
    earlier = {REPLACEMENT_SET_FAILED: f"{rfc3339(ago(5000))}/{count}"} if count else {}
    decided = encode(ago(1000), {FleetKey(name=MID.name, region=HOME): 1}, 140_000_000)
    noted = FrozenMap({REPLACEMENT_SET: decided, **earlier})
    members = [make_node(name, SMALL, annotations=noted) for name in "ab"]
    new = make_node("new", MID, created_at=ago(900), ready_changed_at=ago(890))
    pods = on("a", cpu="2500m"), on("b", cpu="2500m"), on("new", cpu="7500m")
    made = planned(*members, *pods, new, small=1, fleets=(MID, SMALL))
    failed = f"{rfc3339(ago(0))}/{next_one}"
    assert ("new", "replacement-set-failed", failed) in annotations_set(made)


@pytest.mark.parametrize("failed", [False, True])
def test_a_new_node_of_one_fleet_is_not_asked_for_a_set_that_failed(failed: bool) -> None:
    """For hours a node of the same size came every nine minutes, and two were drained for it."""
    eight = make_fleet_settings("eight", cpu=8, memory="64Gi", price="0.19")
    four = make_fleet_settings("four", cpu=4, memory="64Gi", price="0.10")
    noted = {REPLACEMENT_SET_FAILED: f"{rfc3339(ago(400))}/1"} if failed else {}
    members = [make_node("a", eight, annotations=FrozenMap(noted))]
    members += [make_node(name, four) for name in "bcd"]
    requests = {"a": (2500, 1300, 400, 400), "b": (900,), "c": (1300, 900), "d": (1900, 400)}
    placed = [
        on(n, f"{n}-{c}-{i}", cpu=f"{c}m") for n in requests for i, c in enumerate(requests[n])
    ]
    made = planned(*members, *placed, fleets=(eight, four), small=1)
    assert raised(made) == ([] if failed else [("primary-eight", 2, "consolidation")])


@pytest.mark.parametrize("failed", [False, True])
def test_a_set_that_buys_again_what_it_has_is_not_tried_twice(failed: bool) -> None:
    """A node of 6 CPU in the place of one: what spoilt it would spoil it again."""
    sizes = (("four", 4, "0.10"), ("six", 6, "0.16"), ("eight", 8, "0.19"))
    fleets = tuple(make_fleet_settings(n, cpu=c, memory="64Gi", price=p) for n, c, p in sizes)
    noted = {REPLACEMENT_SET_FAILED: f"{rfc3339(ago(400))}/1"} if failed else {}
    members = [make_node("a", fleets[1], annotations=FrozenMap(noted)), make_node("b", fleets[1])]
    requests = {"a": (1300, 3100, 400), "b": (900, 2100, 1300)}
    placed = [
        on(n, f"{n}-{i}", cpu=f"{c}m") for n, row in requests.items() for i, c in enumerate(row)
    ]
    asked = {fleet for fleet, *_ in raised(planned(*members, *placed, fleets=fleets))}
    assert asked == ({"primary-four"} if failed else {"primary-four", "primary-six"})
