"""The scenarios of a node's life: what happens at which second, in a world of their own."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from reconciler.adapters.memory import BudgetShape
from reconciler.model.cluster import Taint
from reconciler.model.errors import Refused
from tests.builders import HOME, selecting
from tests.life.programs import Config
from tests.life.scene import Scene


@dataclass(frozen=True)
class Scenario:
    """One lifecycle, from its first event to rest."""

    name: str
    arrange: Callable[[Scene], None]
    """Before the program starts, and what will happen then."""
    seconds: float
    """How long it is run at least, from the program's start."""
    config: Config = field(default_factory=lambda: Config(unhurried=True))
    evicts: bool = False
    """Whether pods are moved in it."""
    departed: bool = False
    """Whether EC2 has a fleet that the config does not name."""

    def begin(self) -> Scene:
        """The world, ready for the program."""
        scene = Scene(self.config, departed=self.departed)
        self.arrange(scene)
        return scene


def _scale_up(scene: Scene) -> None:
    scene.later(5, lambda: scene.pods("web", "1500m", 5))


def _no_capacity(scene: Scene, pods: int, seconds: float) -> None:
    fleets = [scene.stage.fleets[name, HOME] for name in ("primary-small", "primary-large")]
    for fleet in fleets:
        scene.world.refuse_launches(fleet, "InsufficientInstanceCapacity")
    scene.later(5, lambda: scene.pods("web", "1500m", pods))

    def end() -> None:
        for each in fleets:
            scene.world.refuse_launches(each, None)

    scene.later(seconds, end)


def _capacity_error(scene: Scene) -> None:
    _no_capacity(scene, 3, 300)


def _spot_is_back(scene: Scene) -> None:
    """Spot capacity runs out for two minutes: what was bought on demand meanwhile goes back."""
    _no_capacity(scene, 2, 125)


def _idle(scene: Scene) -> None:
    scene.set_target("primary-small", 3)
    jobs = scene.pods("batch", "3", 2, kind="Job")
    scene.world.advance(60)
    scene.later(20, lambda: scene.finish(jobs))


def _protected(scene: Scene) -> None:
    """EC2 does not end one of three idle nodes."""
    _idle(scene)
    node = next(each for each in scene.world.nodes() if each.instance_id is not None)
    assert node.instance_id is not None
    scene.world.protect_from_termination(node.instance_id)


def _under_used(scene: Scene) -> None:
    """Two nodes too many, each with a pod that fits on the third; a Job runs there too."""
    scene.set_target("primary-small", 3)
    scene.world.advance(60)
    large = scene.pods("large", "2", 3)
    scene.pods("small", "500m", 3)
    scene.pods("batch", "500m", 1, kind="Job")
    scene.later(10, lambda: scene.remove(large[:2]))


def _failed_drain(scene: Scene) -> None:
    """The Eviction API says no until the drain is given up; after its rest it is done."""
    scene.set_target("primary-small", 2)
    scene.world.advance(60)
    scene.pods("large", "2500m", 1)
    scene.pods("small", "500m", 2)
    refusal = Refused("pod", "the budget does not allow it now")
    scene.world.fail_next("evict_pod", refusal, times=100_000)
    scene.later(400, scene.world.log.stop_failing)


def _take_back(scene: Scene) -> None:
    """Demand comes back while the pods of a drained node take their time to stop."""
    scene.set_target("primary-small", 2)
    scene.world.advance(60)
    scene.pods("large", "2500m", 1)
    scene.pods("small", "500m", 1)
    scene.world.objects.pod_stop_seconds = 90
    scene.later(140, lambda: scene.pods("more", "2500m", 1))


def _stuck(scene: Scene) -> None:
    fleet = scene.stage.fleets["primary-small", HOME]
    scene.world.never_join(fleet)
    scene.later(5, lambda: scene.pods("web", "1500m", 2))
    scene.later(200, lambda: scene.world.never_join(fleet, never=False))


def _never_ready(scene: Scene) -> None:
    fleet = scene.stage.fleets["primary-small", HOME]
    scene.world.never_ready(fleet)
    scene.later(5, lambda: scene.pods("web", "1500m", 2))
    scene.later(200, lambda: scene.world.never_ready(fleet, never=False))


def _ended_early(scene: Scene) -> None:
    """Nothing that the fleet launches lives for longer than 20 s; the next fleet is asked."""
    scene.world.end_early(scene.stage.fleets["primary-small", HOME], 20)
    scene.later(5, lambda: scene.pods("web", "1500m", 2))


def _dead_node(scene: Scene) -> None:
    scene.set_target("primary-small", 2)
    scene.world.advance(60)
    scene.pods("web", "3", 2)
    scene.later(10, lambda: scene.world.silence(scene.stage.world.nodes()[-1].name))


def _gone_node(scene: Scene) -> None:
    """An instance vanishes; nobody deletes its Node object but the program."""
    scene.set_target("primary-small", 2)
    scene.world.advance(60)
    scene.pods("web", "3", 2)
    instance = scene.world.nodes()[-1].instance_id
    assert instance is not None
    scene.later(10, lambda: scene.world.vanish(instance))


def _consolidation(scene: Scene) -> None:
    scene.set_target("primary-large", 1)
    scene.world.advance(60)
    scene.pods("web", "1", 2)
    scene.pods("batch", "1", 1)


def _replacement_set(scene: Scene) -> None:
    """Three nodes of 4 CPU that only together can be replaced by a cheaper one of 8."""
    scene.set_target("primary-small", 3)
    scene.world.advance(60)
    scene.pods("web", "2500m", 3)


def _maximum(scene: Scene) -> None:
    """The maximum falls while EC2 still owes nodes, and a Job runs."""
    scene.set_target("primary-small", 1)
    scene.world.advance(60)
    fleet = scene.stage.fleets["primary-small", HOME]
    scene.world.refuse_launches(fleet, "InsufficientInstanceCapacity")
    scene.pods("batch", "3", 1, kind="Job")
    scene.later(5, lambda: scene.pods("web", "3", 3))
    scene.later(15, lambda: scene.stage.change_fleet("primary-small", max_capacity=1))
    scene.later(200, lambda: scene.world.refuse_launches(fleet, None))


def _removal(scene: Scene) -> None:
    """A fleet that the config dropped is emptied; a Job on it is waited for."""
    scene.pods("web", "1", 2)
    jobs = scene.pods("batch", "500m", 1, kind="Job")
    scene.world.advance(60)
    scene.later(10, lambda: scene.stage.allow_destroy("primary-old"))
    scene.later(150, lambda: scene.finish(jobs))


def _interruption(scene: Scene) -> None:
    scene.set_target("primary-small", 2)
    scene.world.advance(60)
    scene.pods("web", "3", 2)
    instance = scene.world.nodes()[-1].instance_id
    assert instance is not None
    scene.later(10, lambda: scene.world.interrupt(instance, announce=False))


def _notice(scene: Scene) -> None:
    """The same with EC2's notice in the queue: its pods move, and it is replaced once."""
    scene.set_target("primary-small", 2)
    scene.world.advance(60)
    scene.pods("web", "3", 2)
    instance = scene.world.nodes()[-1].instance_id
    assert instance is not None
    scene.later(10, lambda: scene.world.interrupt(instance))


def _recommendation(scene: Scene) -> None:
    """EC2 recommends to leave a node: another one comes first, then its pods move."""
    scene.set_target("primary-small", 2)
    scene.world.advance(60)
    scene.pods("web", "3", 2)
    instance = scene.world.nodes()[-1].instance_id
    assert instance is not None
    scene.later(100, lambda: scene.world.recommend_leaving(instance))


def _new_image(scene: Scene) -> None:
    """Three nodes are replaced: one, and when it has been watched the two others together."""
    scene.set_target("primary-small", 3)
    scene.world.advance(60)
    scene.pods("web", "2500m", 3)
    scene.later(100, lambda: scene.world.change_template(scene.stage.fleets["primary-small", HOME]))


def _failing_image(scene: Scene) -> None:
    """The same with an image whose nodes never join."""
    fleet = scene.stage.fleets["primary-small", HOME]
    _new_image(scene)
    scene.later(100, lambda: scene.world.never_join(fleet))


def _on_demand_nodes(scene: Scene) -> None:
    """Two well-used on-demand nodes, and spot nodes that come to have room for all of it."""
    scene.set_target("primary-steady", 2)
    scene.world.advance(60)
    scene.pods("web", "1300m", 4)
    scene.later(100, lambda: scene.stage.change_fleet("primary-small", min_capacity=2))


def _expiry(scene: Scene) -> None:
    """A pod whose budget allows nothing keeps an expired node: it is ended all the same."""
    scene.set_target("primary-small", 1)
    scene.world.advance(7200)
    scene.pods("web", "2")
    scene.pods("db", "1")
    one = BudgetShape(namespace="ns", name="db", selector=selecting(app="db"), min_available=1)
    scene.world.add_budget(one)
    ages = {"expire_after_seconds": 7200, "terminate_after_seconds": 60}
    scene.later(100, lambda: scene.stage.change_fleet("primary-small", **ages))


PREFERS_SPOT = Taint(key="lifecycle", value="OnDemand", effect="PreferNoSchedule")
_USUAL = Config(unhurried=True)
_GROUP = replace(_USUAL, groups=("primary-small",))
SCENARIOS = (
    Scenario("scale-up from zero", _scale_up, 120),
    Scenario("capacity errors, on to the next fleet", _capacity_error, 240),
    Scenario("idle nodes leave", _idle, 300),
    Scenario("one of the idle nodes is protected from termination", _protected, 300),
    Scenario("under-used nodes are drained", _under_used, 420, evicts=True),
    Scenario("a drain fails and is taken back", _failed_drain, 800, evicts=True),
    Scenario("a draining node is needed again", _take_back, 420, evicts=True),
    Scenario("an instance never joins", _stuck, 500),
    Scenario("a node is never Ready", _never_ready, 500),
    Scenario("instances end before they are nodes", _ended_early, 300),
    Scenario("a node falls silent", _dead_node, 420),
    Scenario("an instance vanishes", _gone_node, 420),
    Scenario("an instance is interrupted", _interruption, 300),
    Scenario("an instance is interrupted, with notice", _notice, 700, evicts=True),
    Scenario("EC2 recommends to leave an instance", _recommendation, 500, evicts=True),
    Scenario(
        "consolidation", _consolidation, 420, replace(_USUAL, consolidation=True), evicts=True
    ),
    Scenario(
        "nodes are replaced together",
        _replacement_set,
        700,
        replace(_USUAL, consolidation=True),
        evicts=True,
    ),
    Scenario(
        "on-demand nodes are emptied onto spot nodes",
        _on_demand_nodes,
        700,
        replace(_USUAL, spot_rescheduler=True, steady_taints=(PREFERS_SPOT,)),
        evicts=True,
    ),
    Scenario("spot is back", _spot_is_back, 500, replace(_USUAL, spot_return=True), evicts=True),
    Scenario(
        "a new image is rolled out",
        _new_image,
        600,
        replace(_USUAL, rolling_update=True),
        evicts=True,
    ),
    Scenario(
        "a new image fails", _failing_image, 900, replace(_USUAL, rolling_update=True)
    ),
    Scenario("capacity errors of a group, on to the next fleet", _capacity_error, 240, _GROUP),
    Scenario("idle nodes of a group leave", _idle, 300, _GROUP),
    Scenario("under-used nodes of a group are drained", _under_used, 420, _GROUP, evicts=True),
    Scenario("an instance of a group never joins", _stuck, 500, _GROUP),
    Scenario("the maximum of a group is lowered", _maximum, 300, _GROUP),
    Scenario("a pod keeps an expired node", _expiry, 600, evicts=True),
    Scenario("the maximum is lowered", _maximum, 300),
    Scenario(
        "a fleet is removed", _removal, 500, replace(_USUAL, minimum=1), evicts=True, departed=True
    ),
)  # fmt: skip
