"""The capacity loop in the log."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from reconciler.loops.reconcile_loop import CycleReport
from reconciler.loops.reporters.log_reporter import LINES_MAX, SLOW_CYCLE_SECONDS, LogReporter
from reconciler.model.binding import Binding
from reconciler.model.errors import Unavailable
from reconciler.model.ids import NodeName
from reconciler.model.outcome import Outcome, OutcomeKind
from reconciler.model.plan import Held, Plan, ResumedUpdate
from reconciler.model.snapshot import Ignored, Snapshot
from reconciler.model.unplaceable import Reason
from reconciler.planner.explain.held import held_in_words
from tests.builders import AWAY, HOME, NOW
from tests.unit.loops.reporters.reported import FREE, failing, raised, unplaced

SUMMARY_SECONDS = 120.0


class Scene:
    """A reporter, its clock and its events."""

    def __init__(self, events: list[Any]) -> None:
        self.seconds = 0.0
        self.events = events
        self.reporter = LogReporter(lambda: self.seconds, lambda: SUMMARY_SECONDS)

    def cycle(
        self,
        *outcomes: Outcome,
        error: Unavailable | None = None,
        seconds: float = 0.0,
        **plan: Any,
    ) -> None:
        """One cycle as the loop reports it."""
        if error is not None:
            self.reporter.cycle_ended(CycleReport(number=1, error=error))
            return
        made = Plan(at=NOW, cluster="analytics", home_region=HOME, cost=FREE, **plan)
        self.reporter.plan_made(Snapshot(at=NOW), made)
        for outcome in outcomes:
            self.reporter.action_ended(outcome)
        report = CycleReport(number=1, plan=made, outcomes=outcomes, observe_seconds=seconds)
        self.reporter.cycle_ended(report)

    def logged(self, event: str, *levels: str) -> list[Any]:
        """Events of a name, at a level that is seen without -v by default."""
        wanted = levels or ("info", "warning", "error")
        return [e for e in self.events if e["event"] == event and e["log_level"] in wanted]


@pytest.fixture
def scene() -> Iterator[Scene]:
    """Captures the events of one reporter."""
    with capture_logs() as events:
        yield Scene(events)


def test_action_is_one_line_with_decision_reason_before_and_after(scene: Scene) -> None:
    """Whoever asks why there are five nodes must find it in one line."""
    scene.cycle(raised("applied"))
    (event,) = scene.logged("action_applied")
    assert event["log_level"] == "info"
    assert (event["before"], event["after"]) == (2, 5)
    assert event["reason"] == "11 pending pods need 3 more nodes"
    assert (event["policy"], event["fleet"], event["region"]) == ("scale-up", "primary-small", HOME)


def test_raise_names_the_pods_that_took_the_places(scene: Scene) -> None:
    """Whoever asks why a purchase was repeated must find the pods; others need no empty field."""
    scene.cycle(raised("applied"), raised("applied", to=6, places_taken="web/api took the place"))
    plain, repeated = scene.logged("action_applied")
    assert "places_taken" not in plain
    assert repeated["places_taken"] == "web/api took the place"


@pytest.mark.parametrize(
    ("kind", "event", "level"),
    [
        ("refused", "action_refused", "warning"),
        ("failed", "action_failed", "error"),
        ("unknown", "action_outcome_unknown", "warning"),
        ("dry-run", "action_planned", "info"),
    ],
)
def test_trouble_has_its_own_event_and_level(
    scene: Scene, kind: OutcomeKind, event: str, level: str
) -> None:
    """An alert on errors must not fire for what the loop fixes by itself."""
    scene.cycle(raised(kind, detail="fleet-1: no"))
    (found,) = scene.logged(event)
    assert found["log_level"] == level
    assert found["detail"] == "fleet-1: no"


def test_repeated_trouble_is_said_once_in_two_minutes(scene: Scene) -> None:
    """A fleet without capacity for an hour is one fact, not a thousand lines."""
    for _ in range(5):
        scene.cycle(raised("refused"))
    assert len(scene.logged("action_refused")) == 1
    scene.cycle(raised("refused", to=6))
    assert len(scene.logged("action_refused")) == 2
    scene.seconds = 121
    scene.cycle(raised("refused"))
    assert len(scene.logged("action_refused")) == 3


@pytest.mark.parametrize("kind", ["failed", "applied"])
def test_fleets_of_one_name_are_distinguished_by_their_region(
    scene: Scene, kind: OutcomeKind
) -> None:
    """A purchase in the second region, or its refusal, was missing from the log."""
    scene.cycle(raised(kind), raised(kind, region=AWAY))
    told = scene.logged(f"action_{kind}")
    assert [(each["fleet"], each["region"]) for each in told] == [
        ("primary-small", HOME),
        ("primary-small", AWAY),
    ]


def test_removal_that_waits_in_two_regions_is_reported_each(scene: Scene) -> None:
    """Whoever waits for the one that is left would look in the wrong region."""
    here = replace(failing(""), removal="2 nodes left")
    for _ in range(2):
        scene.cycle(fleets=(here, replace(here, region=AWAY)))
    told = scene.logged("fleet_removal_waits")
    assert [each["region"] for each in told] == [HOME, AWAY]


def test_unplaceable_pod_is_said_once_per_change(scene: Scene) -> None:
    """`why is it pending` must be in the log, and not drown it."""
    for _ in range(3):
        scene.cycle(unplaceable=(unplaced("giant"),))
    assert len(scene.logged("pod_unplaceable")) == 1
    scene.cycle(unplaceable=(unplaced("giant", code="max-capacity"),))
    assert len(scene.logged("pod_unplaceable")) == 2
    scene.cycle()
    (gone,) = scene.logged("pod_no_longer_unplaceable")
    assert gone["pod"] == "ns/giant"


def test_unplaceable_pod_is_not_said_again_for_other_numbers(scene: Scene) -> None:
    """A fleet that is short says for how long: 200 pods were 200 lines in every cycle."""
    for minutes in range(20, 23):
        pod = unplaced("web", code="fleet-unavailable", detail=f"launched none for {minutes} min")
        scene.cycle(unplaceable=(pod,))
    assert len(scene.logged("pod_unplaceable")) == 1


def test_many_unplaceable_pods_are_counted(scene: Scene) -> None:
    """Thirty thousand lines in one cycle help nobody."""
    scene.cycle(unplaceable=tuple(unplaced(f"p-{n}") for n in range(LINES_MAX + 7)))
    assert len(scene.logged("pod_unplaceable")) == LINES_MAX
    (more,) = scene.logged("pods_unplaceable_more")
    assert more["pods"] == 7


def test_quiet_cycles_are_summed_up_at_the_logging_interval(scene: Scene) -> None:
    """A silent log looks like a stuck program."""
    for second in range(0, 250, 10):
        scene.seconds = second
        scene.cycle()
    assert len(scene.logged("cycle_ended")) == 3
    assert len(scene.logged("cycle_ended", "debug")) == 22


def test_slow_cycle_is_reported_though_nothing_changed(scene: Scene) -> None:
    """Pods waited for it, and nobody could tell what took so long."""
    for seconds in (0.1, SLOW_CYCLE_SECONDS, 0.1):
        scene.cycle(seconds=seconds)
    slow = [each["observe_seconds"] for each in scene.logged("cycle_ended")[1:]]
    assert slow == [SLOW_CYCLE_SECONDS]


def test_cycle_that_acted_is_always_summed_up(scene: Scene) -> None:
    """After a change its cost must be in the log."""
    scene.cycle()
    scene.cycle(raised("applied"))
    assert [event["actions"] for event in scene.logged("cycle_ended")] == [0, 1]


def test_failed_cycles_are_said_once_while_they_last(scene: Scene) -> None:
    """An outage of an hour is one line every two minutes."""
    for _ in range(4):
        scene.cycle(error=Unavailable("api", "no answer"))
    (event,) = scene.logged("cycle_failed")
    assert event["reason"] == "api: no answer"


def test_failed_cycle_is_not_said_again_for_other_numbers(scene: Scene) -> None:
    """A cluster that is silent is so for longer each time, which is no other failure."""
    for seconds in (64, 67, 70):
        scene.cycle(error=Unavailable("cluster", f"no answer about pods for {seconds} s"))
    scene.cycle(error=Unavailable("fleets of us-west-2", "no answer"))
    reasons = [each["reason"] for each in scene.logged("cycle_failed")]
    assert reasons == ["cluster: no answer about pods for 64 s", "fleets of us-west-2: no answer"]


def test_held_node_is_reported(scene: Scene) -> None:
    """The safety stop must not be silent."""
    held = (Held(node=NodeName("n-1"), code="safety-stop"),)
    scene.cycle(held=held)
    scene.cycle(held=held)
    (event,) = scene.logged("node_held")
    assert (event["node"], event["code"]) == ("n-1", "safety-stop")
    assert event["reason"] == held_in_words(held[0])


def test_fleet_that_fails_and_recovers_is_said_once_each(scene: Scene) -> None:
    """Without it no report says why a more expensive fleet grew."""
    scene.cycle(fleets=(failing("UnfulfillableCapacity; until 12:00:00"),))
    scene.cycle(fleets=(failing("UnfulfillableCapacity; until 12:01:00"),))
    scene.cycle(fleets=(failing(""),))
    scene.cycle(fleets=(failing(""),))
    (event,) = scene.logged("fleet_unavailable")
    assert (event["fleet"], event["reason"]) == (
        "primary-small",
        "UnfulfillableCapacity; until 12:00:00",
    )
    assert len(scene.logged("fleet_available_again")) == 1


def test_groups_that_even_out_their_zones_are_said_once_and_when_others_do(scene: Scene) -> None:
    """Pods would be lost past their budgets, and the log name no cause."""
    one, two = replace(failing(""), rebalances_zones=True), failing("")
    for fleets in ((one,), (one,), (replace(one, fleet="other"), one), (two,), (two,)):
        scene.cycle(fleets=fleets)
    told = scene.logged("groups_rebalance_zones")
    assert [event["groups"] for event in told] == [
        ("primary-small (us-west-2)",),
        ("other (us-west-2)", "primary-small (us-west-2)"),
    ]


def test_orphans_are_said_once(scene: Scene) -> None:
    """Machines that nobody looks after are a bill that nobody understands."""
    scene.cycle(orphans=3)
    scene.cycle(orphans=3)
    (event,) = scene.logged("orphans_found")
    assert event["instances"] == 3


def test_verdict_on_the_cluster_is_reported_at_start_at_each_change_and_while_it_is_wrong(
    scene: Scene,
) -> None:
    """A wrong kube-context would show only in what is not done."""
    proven = Binding(verdict="proven", because="1 of 1 node", may_remove=True)
    wrong = Binding(verdict="unproven", because="none of 0 nodes")
    for binding in (proven, proven, wrong, wrong, proven):
        scene.cycle(binding=binding)
    told = scene.logged("cluster_binding")
    assert [(e["verdict"], e["log_level"]) for e in told] == [
        ("proven", "info"),
        ("unproven", "error"),
        ("proven", "info"),
    ]
    scene.cycle(binding=wrong)
    scene.seconds += 121
    scene.cycle(binding=wrong)
    assert len(scene.logged("cluster_binding", "error")) == 3


def test_planning_that_fails_is_an_error_with_the_words_of_the_bug(scene: Scene) -> None:
    """Nothing was drained any more, and the log of that day said nothing."""
    bug = "planning what may go fails: KeyError: 'x', at disruption/idle.py:49"
    pods = (unplaced("a", code="planning-failed", detail="is of a namespace on whose ..."),)
    for _ in range(3):
        scene.cycle(no_removals_because=bug, unplaceable=pods)
    removals, left_out = scene.logged("planning_failed", "error")
    assert (removals["left_out"], removals["reason"]) == ("removals", bug)
    assert (left_out["left_out"], left_out["namespace"]) == ("pods", "ns")
    assert left_out["reason"].startswith("it is of a namespace")
    scene.seconds += 121
    scene.cycle(no_removals_because=bug)
    assert len(scene.logged("planning_failed")) == 3


def test_clock_that_is_wrong_is_reported_now_and_then(scene: Scene) -> None:
    """Nothing would be removed, and nobody would know that a clock is the cause."""
    for ahead in (0, 120, 3600, 3600, -3600):
        scene.cycle(clock_skew_seconds=ahead)
    assert [e["ahead_seconds"] for e in scene.logged("clock_skewed", "error")] == [3600]


def test_fleet_that_is_left_out_is_reported_once_with_its_reason(scene: Scene) -> None:
    """It would seem missing, or to be the one that is scaled."""
    left_out = (Ignored(code="same-name", kind="Fleet", name="fleet-a"),)
    scene.cycle(ignored=left_out)
    scene.cycle(ignored=left_out)
    (told,) = scene.logged("fleet_left_out")
    assert (told["fleet_id"], "an older fleet" in told["reason"]) == ("fleet-a", True)


def test_object_that_cannot_be_read_is_reported_with_the_reason(scene: Scene) -> None:
    """Its name alone sends people through the whole object."""
    why = "status.allocatable is missing"
    scene.cycle(ignored=(Ignored(code="unreadable", kind="Node", name="n1", detail=why),))
    (told,) = scene.logged("object_unreadable")
    assert (told["object_kind"], told["name"], told["reason"]) == ("Node", "n1", why)


def test_pods_without_a_sector_are_in_the_summary_as_soon_as_one_waits(scene: Scene) -> None:
    """Nothing else in the log tells of them; how many there are changes beside others' nodes."""
    for pods in (0, 1, 2):
        ignored = tuple(Ignored(code="no-sector", namespace="web", pod=str(n)) for n in range(pods))
        scene.cycle(ignored=ignored)
    assert [e["pods_without_sector"] for e in scene.logged("cycle_ended")] == [0, 1]


def test_pod_of_an_unknown_sector_is_reported_without_a_fleet(scene: Scene) -> None:
    """There is none that could be named, and "- (us-west-2)" is none either."""
    reason = Reason(fleet="", region=HOME, code="no-sector", detail="primry")
    scene.cycle(unplaceable=(replace(unplaced("a"), reasons=(reason,)),))
    (told,) = scene.logged("pod_unplaceable")
    assert told["reasons"] == ["no-sector: primry"]


def test_resume_that_names_no_halted_update_is_a_warning(scene: Scene) -> None:
    """The annotation is gone a moment later, as if it had worked."""
    names = ("primary-smal", False, "no such fleet"), ("primary-small", True, "its halt is lifted")
    resumes = tuple(ResumedUpdate(fleet=f, done=done, because=b) for f, done, b in names)
    scene.cycle(resumes=resumes)
    scene.cycle(resumes=resumes)
    (refused,) = scene.logged("update_not_resumed", "warning")
    assert (refused["fleet"], refused["reason"]) == ("primary-smal", "no such fleet")
    (done,) = scene.logged("update_resumed", "info")
    assert done["fleet"] == "primary-small"
