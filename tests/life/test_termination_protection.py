"""An instance that EC2 refuses to end, over hours and over restarts of the program."""

from reconciler.model.ids import FleetId, InstanceId
from reconciler.simulation.process import Process
from tests.builders import HOME, is_tainted
from tests.life.programs import Config
from tests.life.scene import Scene

MINUTE, HOUR = 60.0, 3600.0


class Protected:
    """A fleet of three nodes that nobody needs, the first of them protected from termination."""

    def __init__(self) -> None:
        self.scene = Scene(Config(unhurried=True), departed=False)
        self.scene.set_target("primary-small", 3)
        self.world = self.scene.world
        self.world.advance(120)
        self.fleet: FleetId = self.scene.stage.fleets["primary-small", HOME]
        self.instance = self.members()[0]
        self.world.protect_from_termination(self.instance)
        self.process = self.scene.stage.process
        self.process.sleep_seconds = lambda: MINUTE

    def members(self) -> list[InstanceId]:
        """The fleet's instances."""
        record = self.world.fleets.records[self.fleet]
        return sorted(member.id for member in self.world.fleets.members(record))

    def asked(self) -> int:
        """How often EC2 was asked to end the protected one."""
        calls = self.world.log.calls
        return sum(
            c.operation == "terminate_instances" and self.instance in c.arguments for c in calls
        )

    def is_at_rest(self) -> bool:
        """Whether it alone is there, asked for by the target, and takes pods."""
        (node,) = [n for n in self.world.nodes() if n.instance_id == self.instance]
        there = self.members() == [self.instance] and self.world.target(self.fleet) == 1
        return there and not is_tainted(node)


def test_protected_instance_stays_alone_and_goes_when_it_may() -> None:
    """It would be asked for in each cycle for ever, and the others of its call would run on."""
    life = Protected()
    life.process.run_for(20 * MINUTE)
    assert life.is_at_rest()
    assert life.asked() == 1
    for hour in range(1, 4):
        life.process.run_for(HOUR)
        assert life.is_at_rest()
        assert life.asked() == 1 + hour
    life.world.protect_from_termination(life.instance, protected=False)
    life.process.run_for(HOUR)
    assert life.members() == []
    assert life.world.target(life.fleet) == 0
    assert life.scene.laws.broken == []


def test_next_process_knows_of_the_refusal() -> None:
    """A leader that changes every few minutes would ask with every change."""
    life = Protected()
    life.process.run_for(20 * MINUTE)
    following = Process(life.world, life.process.settings)
    following.run_for(20 * MINUTE)
    assert life.asked() == 1
    assert life.is_at_rest()
