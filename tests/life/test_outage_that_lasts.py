"""Nodes that die together: held as an outage, reported in each minute, and gone after an hour."""

from reconciler.model.cluster import Node
from reconciler.web.board import StatusBoard
from reconciler.web.verdict import verdict_of
from tests.life.programs import Config
from tests.life.scene import Scene

MINUTE, HOUR = 60.0, 3600.0


class Outage:
    """Six nodes whose kubelets fall silent at once and stay so."""

    def __init__(self) -> None:
        self.scene = Scene(Config(unhurried=True), departed=False)
        self.process = self.scene.stage.process
        self.process.sleep_seconds = lambda: MINUTE
        self.board = StatusBoard(self.scene.world.clock, "1", lambda: True)
        self.process.plan_hooks.append(self.board.plan_made)
        self.scene.pods("web", "3", 6)
        self.process.run_for(5 * MINUTE)
        for node in self.nodes():
            self.scene.world.silence(node.name)

    def nodes(self) -> list[Node]:
        """The nodes of fleets."""
        return [node for node in self.scene.world.nodes() if node.instance_id]

    def held(self) -> list[str]:
        """What the verdict says of nodes that are held."""
        causes = verdict_of(self.board).causes
        return [cause.text for cause in causes if cause.kind == "nodes-held"]


def test_dead_nodes_are_reported_and_leave_after_an_hour() -> None:
    """They were replaced one to one and billed for good, and the first line said OK."""
    life = Outage()
    life.process.run_for(20 * MINUTE)
    for _ in range(30):
        life.process.run_for(MINUTE)
        (held,) = life.held()
        assert "6 of 12 nodes are not Ready" in held
    assert len(life.nodes()) == 12
    life.process.run_for(2 * HOUR)
    assert life.held() == []
    assert len(life.nodes()) == 6
    assert all(node.ready for node in life.nodes())
    assert life.scene.laws.broken == []
