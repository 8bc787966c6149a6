"""Batches of a spot return: what ends one, and what does not."""

from dataclasses import replace

from reconciler.model.actions import SPOT_RETURN
from reconciler.model.frozen import FrozenMap
from reconciler.model.saved_state import SavedFleetState
from reconciler.planner.planner import plan
from tests.builders import HOME, ago, make_cloud_of, make_fleet, make_node, make_snapshot
from tests.unit.planner.fleets.stand_ins import (
    SPOT,
    STEADY,
    busy,
    marked,
    planned,
    settings_of,
    stand_in,
)
from tests.unit.planner.placed import raised


def test_batch_outlives_the_seconds_in_which_ec2_launches_its_spot_node() -> None:
    """Its own purchase would end it: the new node would come, stand idle and be ended."""
    a = stand_in("a", batch=20)
    pods = busy(a)
    first = planned(a, pods=pods)
    assert raised(first)
    fleets = make_fleet(SPOT, 1, fulfilled_capacity=0), make_fleet(STEADY, 1)
    cloud = make_cloud_of((a,), *fleets)
    second = plan(
        make_snapshot(a, *pods, cloud=cloud, fleet_states=first.fleet_states), settings_of()
    )
    assert marked(second) == []


def test_spot_node_that_ec2_replaces_ends_no_batch() -> None:
    """An interrupted instance is replaced within a minute; that is no shortage."""
    a, s = stand_in("a", batch=20), make_node("s", SPOT, created_at=ago(6000))
    fleets = make_fleet(SPOT, 2, fulfilled_capacity=1), make_fleet(STEADY, 1)
    cloud = make_cloud_of((a, s), *fleets)
    made = plan(make_snapshot(a, s, *busy(a), *busy(s), cloud=cloud), settings_of())
    assert marked(made) == []


def test_mark_from_the_future_stops_no_batch_of_others() -> None:
    """Whoever may annotate nodes must not stop spot return for good."""
    a, b = stand_in("a"), stand_in("b")
    forged = {**a.annotations, SPOT_RETURN: "9999-01-01T00:00:00Z"}
    a = replace(a, annotations=FrozenMap(forged))
    guarded = busy(a, annotations=FrozenMap({"karpenter.sh/do-not-disrupt": "true"}))
    # The last batch that anybody knows of began two hours ago.
    last = SavedFleetState(fleet=SPOT.name, region=HOME, spot_return_at=ago(7200))
    made = planned(a, b, pods=[*guarded, *busy(b)], saved=last)
    assert "a" in dict(marked(made)) or "b" in dict(marked(made))
