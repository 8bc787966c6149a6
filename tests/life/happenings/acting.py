"""What all steps share: the stage, and how a step finds what it acts on."""

from collections.abc import Callable

from reconciler.model.cluster import Node
from reconciler.model.fleet import Instance
from reconciler.model.ids import FleetId
from tests.life.programs import Step
from tests.life.stage import Stage


class Acting:
    """Acts on a stage, and remembers what people did when.

    Args:
        stage: Where.
    """

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.world = stage.world
        self.before: list[Callable[[], None]] = []
        """Asked before each step."""
        self.after: list[Callable[[], None]] = []
        """Asked after each step."""
        self.guarded_at: dict[str, float] = {}
        """Uids of protected pods, and names of protected nodes, with the time of the protection."""

    def do(self, step: Step) -> None:
        """Carry one step out."""
        name = step.kind.replace("-", "_")
        act: Callable[[Step], None] = getattr(self, f"_{name}")
        for watch in self.before:
            watch()
        act(step)
        for watch in self.after:
            watch()

    def _nothing(self, step: Step) -> None:
        """What steps shrink to."""

    def _now(self) -> float:
        return self.world.clock.monotonic_seconds()

    def _nodes(self) -> list[Node]:
        return [node for node in self.world.nodes() if node.instance_id is not None]

    def _node(self, step: Step) -> Node | None:
        found = self._nodes()
        return found[step.a % len(found)] if found else None

    def _instance(self, step: Step) -> Instance | None:
        found = [i for i in self.world.fleets.instances.values() if not i.gone]
        return found[step.a % len(found)] if found else None

    def _fleet(self, step: Step) -> FleetId:
        found = sorted(self.stage.fleets.values())
        return found[step.a % len(found)]
