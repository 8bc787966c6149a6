"""EC2 takes a node back while an admission policy refuses every change of nodes."""

from collections.abc import Sequence

import pytest

from reconciler.adapters.memory.faults import Call
from reconciler.model.errors import Refused
from reconciler.model.ids import PodKey
from tests.life.programs import Config
from tests.life.scene import Scene


class Interrupted:
    """A node that EC2 takes back in two minutes, and whose changes are refused.

    Args:
        refused: Which calls are refused.
        cpu: What each of its pods asks for.
        pods: How many there are in all.
    """

    def __init__(self, refused: Sequence[str], cpu: str, pods: int) -> None:
        self.scene = Scene(Config(unhurried=True), departed=False)
        self.refused = frozenset(refused)
        self.evicted: list[str] = []
        self.process = self.scene.stage.process
        self.process.sleep_seconds = lambda: 20.0
        self.scene.pods("web", cpu, pods)
        self.process.run_for(100)
        used = {pod.node_name for pod in self.scene.world.pods()}
        self.node = next(node for node in self.scene.world.nodes() if node.name in used)
        assert self.node.instance_id is not None
        self.scene.world.log.watchers.append(self._refuse)
        self.scene.world.interrupt(self.node.instance_id)

    def _refuse(self, call: Call) -> None:
        if call.operation in self.refused:
            raise Refused(call.operation, "admission webhook denied the request")
        if call.operation == "evict_pod":
            self.evicted.append(call.subject)

    @property
    def on_it(self) -> set[PodKey]:
        """The pods on the node."""
        return {pod.key for pod in self.scene.world.pods() if pod.node_name == self.node.name}


@pytest.mark.parametrize("refused", ["annotate_node", "taint_node"])
def test_pods_leave_in_time_though_the_node_cannot_be_marked(refused: str) -> None:
    """No eviction was tried as the mark failed before it: the pods died with the machine."""
    life = Interrupted([refused], cpu="3", pods=2)
    (pod,) = life.on_it
    life.process.run_for(110)
    assert life.evicted == [str(pod)]
    assert pod not in {each.key for each in life.scene.world.pods()}, "its grace is over"
    life.process.run_for(300)
    web = [each for each in life.scene.world.pods() if each.node_name is not None]
    assert len(web) == 2


@pytest.mark.parametrize("refused", [["taint_node"], ["taint_node", "annotate_node"]])
def test_pods_that_return_to_a_node_without_its_taint_are_not_evicted_in_turn(
    refused: list[str],
) -> None:
    """Each cycle of the last two minutes would end them once more, moments after their start."""
    life = Interrupted(refused, cpu="500m", pods=3)
    before = {str(pod) for pod in life.on_it}
    life.process.run_for(85)
    assert len(life.on_it) == 3, "they returned, as the node has room"
    assert set(life.evicted) == before
    assert len(life.evicted) == len(before)
