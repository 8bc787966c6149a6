"""Headroom of a sector whose pods use the room that another sector's new nodes leave."""

from reconciler.planner.planner import plan
from reconciler.planner.settings import Headroom
from tests.builders import (
    make_cloud,
    make_fleet,
    make_fleet_settings,
    make_pod,
    make_pods,
    make_settings,
    make_snapshot,
)
from tests.properties.reached import asked_for
from tests.unit.planner.placed import places, raises

OURS = make_fleet_settings("small", cpu=4)
THEIRS = make_fleet_settings("large", sector="other", cpu=8, memory="64Gi", price="0.3")


def test_headroom_is_not_bought_again_while_its_node_launches() -> None:
    """The pod was placed on the node for headroom, and the next plan bought another for that."""
    settings = make_settings(
        OURS,
        THEIRS,
        default_sector="primary",
        headroom=(Headroom(sector="primary", nodes=1),),
    )
    pods = (make_pod("ours", cpu="500m"), *make_pods(3, "theirs", cpu=2, sector="other"))
    cloud = make_cloud(make_fleet(OURS, 0), make_fleet(THEIRS, 0))
    before = make_snapshot(*pods, cloud=cloud)
    made = plan(before, settings)
    assert raises(made) == {(OURS.name, "us-west-2"): 1, (THEIRS.name, "us-west-2"): 1}
    assert places(made)["ours"][0] == THEIRS.name
    again = plan(asked_for(before, made), settings)
    assert raises(again) == {}
    assert places(again)["ours"][0] == THEIRS.name
