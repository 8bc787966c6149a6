"""On-demand nodes that stand in for spot nodes, from the shortage until after it."""

from reconciler.model.actions import FALLBACK_FROM
from tests.life.scenarios import SCENARIOS


def test_nodes_bought_in_a_shortage_stay_marked_when_it_is_over() -> None:
    """What the shortage costs would be forgotten with the fleet's rest, or with a restart."""
    scene = next(s for s in SCENARIOS if s.name.startswith("capacity errors")).begin()
    assert scene.run(240)
    nodes = [n for n in scene.world.nodes() if n.labels.get("fleet") == "primary-steady"]
    assert nodes
    assert {n.annotations.get(FALLBACK_FROM) for n in nodes} == {"primary-small"}


def test_nodes_bought_in_a_shortage_go_back_when_spot_is_back() -> None:
    """Every pod moves once, and its new node is there before."""
    scene = next(s for s in SCENARIOS if s.name == "spot is back").begin()
    scene.stage.process.run_for(110)
    fleets = [n.labels.get("fleet") for n in scene.world.nodes() if FALLBACK_FROM in n.annotations]
    assert fleets == ["primary-steady"]
    assert scene.run(500)
    assert {n.labels.get("fleet") for n in scene.world.nodes() if n.instance_id} == {
        "primary-small"
    }
    assert len(scene.laws.evictions) == 2
