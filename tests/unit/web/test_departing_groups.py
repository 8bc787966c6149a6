"""Nodes of a group that the config let go, while the role may not read groups."""

import json

import pytest

from reconciler.model.snapshot import CloudState, Ignored
from reconciler.web.view import ConfigInForce
from tests.builders import HOME, make_fleet, make_fleet_settings, make_node
from tests.unit.web.scene import Scene, fleet

SMALL = make_fleet_settings()
LARGE = make_fleet_settings(size="large", provider="asg")
DENIED = Ignored(
    code="unreadable", kind="Provider", name="asg", detail="Forbidden: Auto Scaling: not allowed"
)


@pytest.mark.parametrize(
    ("left", "allowed"), [(True, "primary-large"), (False, "primary-large"), (True, "primary-old")]
)
def test_nodes_that_cannot_be_seen_to_go_are_reported(left: bool, allowed: str) -> None:
    """They would run for ever, and `ci apply` wait for them, while everything looks healthy.

    Nodes of others may have the label too, and are no reason for an alert.
    """
    nodes = (make_node("a", SMALL), *((make_node("b", LARGE),) if left else ()))
    cloud = CloudState(fleets=(make_fleet(SMALL, 1),), regions=frozenset({HOME}), ignored=(DENIED,))
    told_of = left and allowed == "primary-large"
    with Scene() as scene:
        scene.board.config_loaded(ConfigInForce(allow_destroy=frozenset({allowed})))
        scene.cycle(nodes=nodes, cloud=cloud, fleets=(fleet(),))
        verdict = json.loads(scene.ask("/api/status")[2])["verdict"]
    assert verdict["level"] == ("degraded" if told_of else "ok")
    told = (
        "Auto Scaling denies calls: nodes of primary-large are not drained, which the config no"
        " longer names: Forbidden: Auto Scaling: not allowed"
    )
    assert verdict["problems"] == ([told] if told_of else [])
