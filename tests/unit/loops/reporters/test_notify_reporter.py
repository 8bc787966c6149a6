"""The capacity loop in a chat."""

import pytest

from reconciler.loops.reconcile_loop import CycleReport
from reconciler.loops.reporters.combined import GatedReporter
from reconciler.loops.reporters.notify_reporter import LINES_MAX, NotifyReporter
from reconciler.model.errors import Unavailable
from reconciler.model.ids import NodeName
from reconciler.model.outcome import Outcome
from reconciler.model.plan import FleetPlan, Held, Plan
from reconciler.model.snapshot import Snapshot
from reconciler.model.unplaceable import Unplaceable
from reconciler.planner.explain.held import held_in_words
from reconciler.telemetry.repeats import OBJECTS_MAX
from tests.builders import AWAY, HOME, NOW
from tests.unit.loops.reporters.reported import FREE, failing, raised, unplaced


class Scene:
    """A reporter and what it sent."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.told: list[str] = []
        self.reporter = NotifyReporter(self, lambda: self.seconds)

    def notify(self, text: str) -> None:
        self.told.append(text)

    def cycle(
        self,
        *outcomes: Outcome,
        unplaceable: tuple[Unplaceable, ...] = (),
        fleets: tuple[FleetPlan, ...] = (),
        held: tuple[Held, ...] = (),
        no_removals_because: str = "",
    ) -> None:
        """One cycle as the loop reports it."""
        plan = Plan(
            at=NOW,
            cluster="analytics",
            home_region=HOME,
            cost=FREE,
            unplaceable=unplaceable,
            fleets=fleets,
            held=held,
            no_removals_because=no_removals_because,
        )
        self.reporter.plan_made(Snapshot(at=NOW), plan)
        for outcome in outcomes:
            self.reporter.action_ended(outcome)
        self.reporter.cycle_ended(CycleReport(number=1, plan=plan, outcomes=outcomes))


@pytest.fixture
def scene() -> Scene:
    """A silent channel."""
    return Scene()


def test_bought_capacity_is_reported_with_its_reason(scene: Scene) -> None:
    """The team wants to know why the bill grows."""
    scene.cycle(raised("applied"))
    assert scene.told == [
        "primary-small (us-west-2): 2 to 5 nodes, 11 pending pods need 3 more nodes"
    ]


def test_fleet_that_is_asked_for_nothing_is_logged_once(scene: Scene) -> None:
    """Demand moves to more expensive capacity, and no report says why."""
    for minute in range(3):
        scene.cycle(fleets=(failing(f"InsufficientInstanceCapacity; until 12:0{minute}:00"),))
    (told,) = scene.told
    assert told.startswith("primary-small (us-west-2) is not asked for nodes: Insufficient")


def test_instance_that_is_held_is_reported_with_the_reason_in_words(scene: Scene) -> None:
    """A code alone sends its reader to the documentation."""
    detail = "pod ns/web runs on node n-1, which is not listed"
    held = Held(node=NodeName(""), instance="i-1", code="unlisted-node", detail=detail)
    scene.cycle(held=(held,))
    assert scene.told == [f"node of instance i-1 is held (unlisted-node): {held_in_words(held)}"]


def test_planning_that_fails_is_reported_once_an_hour(scene: Scene) -> None:
    """Interrupted nodes end with their pods until somebody reports the bug."""
    for _ in range(2):
        scene.cycle(no_removals_because="planning what may go fails: KeyError: 'x'")
    assert scene.told == ["no node is drained or ended: planning what may go fails: KeyError: 'x'"]


def test_quarantined_pods_are_reported(scene: Scene) -> None:
    """A runaway that was stopped is a workload that does not run."""
    scene.cycle(unplaceable=(unplaced("web", "no-progress"),))
    assert scene.told == ["nothing can take pod ns/web: no-progress"]


def test_quiet_and_dry_cycles_tell_nothing(scene: Scene) -> None:
    """A channel that talks all the time is muted."""
    scene.cycle()
    scene.cycle(raised("dry-run"), raised("already-done"), raised("refused"))
    assert scene.told == []


def test_lasting_trouble_is_reported_once_an_hour(scene: Scene) -> None:
    """One broken fleet must not fill the channel."""
    for _ in range(3):
        scene.cycle(raised("failed", detail="no"), unplaceable=(unplaced("giant"),))
    (text,) = scene.told
    assert text.splitlines() == [
        "nothing can take pod ns/giant: insufficient-memory",
        "set-capacity primary-small (us-west-2) failed: no",
    ]
    scene.seconds = 3600
    scene.cycle(raised("failed", detail="no"))
    assert len(scene.told) == 2


def test_failures_of_one_fleet_in_two_regions_are_both_reported(scene: Scene) -> None:
    """The channel named one region for an hour, and the other one bought nothing either."""
    scene.cycle(raised("failed", "no"), raised("failed", "neither", region=AWAY))
    (text,) = scene.told
    assert text.splitlines() == [
        "set-capacity primary-small (us-west-2) failed: no",
        "set-capacity primary-small (us-east-1) failed: neither",
    ]


def test_many_lines_are_one_short_message(scene: Scene) -> None:
    """A burst of a thousand pods is one message."""
    scene.cycle(unplaceable=tuple(unplaced(f"p-{n}") for n in range(LINES_MAX + 5)))
    (text,) = scene.told
    assert text.splitlines()[-1] == "and 5 more"


def test_more_pods_than_can_be_remembered_are_reported_once_an_hour(scene: Scene) -> None:
    """A batch of 20,000 pods over `max_capacity` sent a message with every cycle."""
    crowd = tuple(unplaced(f"p-{n}") for n in range(2 * OBJECTS_MAX))
    for _ in range(3):
        scene.cycle(unplaceable=crowd)
    assert len(scene.told) == 1
    scene.cycle(unplaceable=(*crowd, unplaced("late")))
    assert scene.told[1:] == ["nothing can take pod ns/late: insufficient-memory"]
    scene.seconds = 3600
    scene.cycle(unplaceable=crowd)
    assert len(scene.told) == 3


def test_cycle_that_cannot_plan_is_reported_without_secrets(scene: Scene) -> None:
    """An outage of the API server is for people, its tokens are not."""
    error = Unavailable("api", "Authorization: Bearer abcdefghijklmnop was refused")
    scene.reporter.cycle_ended(CycleReport(number=1, error=error))
    (text,) = scene.told
    assert text.startswith("no plan could be made: api:")
    assert "abcdefghijklmnop" not in text


def test_what_was_noted_before_the_lead_was_lost_is_not_reported_later(scene: Scene) -> None:
    """Hours later, as the leader again, it would tell of nodes that were bought long ago."""
    leads = True
    gated = GatedReporter(scene.reporter, lambda: leads)
    gated.action_ended(raised("applied"))
    leads = False
    gated.cycle_ended(CycleReport(number=1))
    leads = True
    gated.cycle_ended(CycleReport(number=2))
    assert scene.told == []
