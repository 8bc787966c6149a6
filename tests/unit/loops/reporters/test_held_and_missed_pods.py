"""What the recorder writes of pods that are held, and of what goes while nobody records."""

from dataclasses import replace
from datetime import datetime, timedelta

from reconciler.loops.reconcile_loop import CycleReport
from reconciler.loops.reporters.combined import GatedReporter
from reconciler.loops.reporters.demand_recorder import DemandRecorder
from reconciler.model.cluster import PodDisruptionBudget
from reconciler.planner.planner import plan
from tests.builders import NOW, make_daemon_set, make_snapshot
from tests.unit.loops.reporters.demand_log import KEEP_SECONDS, SETTINGS, Log, made, record


def test_pod_that_a_gate_held_is_recorded_since_it_asks_for_room() -> None:
    """Kueue held a Job for hours, in which its replay had nodes for it."""
    log = Log()
    recorder = DemandRecorder(log, KEEP_SECONDS, log.counts.append)
    held, quick, late = (made(n, owner="Job", gated=True) for n in ("held", "quick", "late"))
    record(recorder, held, quick, late)
    begun = NOW + timedelta(seconds=20)
    ran = replace(quick, gated=False, phase="Succeeded", scheduled_at=begun, started_at=begun,
                  finished_at=NOW + timedelta(seconds=50))  # fmt: skip
    record(recorder, replace(held, gated=False), ran, late, after=60)
    let_go = replace(held, gated=False), replace(late, gated=False)
    record(recorder, *let_go, after=90)
    record(recorder, *let_go, after=86_400)
    assert {id_: (pod.at, pod.ran_seconds) for id_, pod in log.pods().items()} == {
        "uid-ns-quick": (begun, 30),
        "uid-ns-held": (NOW + timedelta(seconds=60), None),
        "uid-ns-late": (NOW + timedelta(seconds=90), None),
    }


def test_gate_counts_though_another_leader_records_since() -> None:
    """A leader that began after the gate was lifted recorded the Job from its creation on."""
    log = Log()
    recorder = DemandRecorder(log, KEEP_SECONDS, log.counts.append)
    record(recorder, made("held", owner="Job", gated=True))
    record(recorder, made("held", owner="Job"), after=3_600)
    record(DemandRecorder(log, KEEP_SECONDS, log.counts.append), made("held", owner="Job"),
           after=7_200)  # fmt: skip
    (pod,) = log.pods().values()
    assert pod.at == NOW + timedelta(hours=1)


def test_what_went_between_two_leaders_or_at_midnight_has_ended() -> None:
    """Its replay ran on to the end of the last recorded day, and held nodes for it."""
    log = Log()
    recorder = DemandRecorder(log, KEEP_SECONDS, log.counts.append)
    budget = PodDisruptionBudget(namespace="ns", name="b", selector=None, disruptions_allowed=0)
    before = make_snapshot(
        made("job", owner="Job"), at=NOW, budgets=(budget,), daemon_sets=(make_daemon_set(),)
    )
    recorder.plan_made(before, plan(before, SETTINGS))
    record(DemandRecorder(log, KEEP_SECONDS, log.counts.append), after=300)
    assert log.pods()["uid-ns-job"].until == NOW + timedelta(seconds=300)
    assert deletions(log) == [NOW + timedelta(seconds=300)] * 2
    log.lines = b""
    recorder = DemandRecorder(log, KEEP_SECONDS, log.counts.append)
    recorder.plan_made(before, plan(before, SETTINGS))
    record(recorder, after=86_400)
    assert deletions(log) == [NOW + timedelta(days=1)] * 2


def test_replica_that_leads_again_records_everything_that_is_there() -> None:
    """It compared with what it had seen before another one led."""
    log, leads = Log(), [True]
    recorder = DemandRecorder(log, KEEP_SECONDS, log.counts.append)
    gated = GatedReporter(recorder, lambda: leads[0])
    for after, leading, pod in ((0, True, "first"), (60, False, "others"), (120, True, "second")):
        leads[0] = leading
        snapshot = make_snapshot(made(pod), at=NOW + timedelta(seconds=after))
        gated.plan_made(snapshot, plan(snapshot, SETTINGS))
        gated.cycle_ended(CycleReport(number=1))
    assert log.lines.count(b'"begin-of-recording"') == 2
    ends = {id_: pod.until for id_, pod in log.pods().items()}
    assert ends == {"uid-ns-first": NOW + timedelta(seconds=120), "uid-ns-second": None}


def deletions(log: Log) -> list[datetime]:
    """When a budget or a DaemonSet was deleted."""
    return [line.at for line in log.demand().lines if getattr(line, "deleted", False)]


def test_pod_that_its_scheduler_tries_again_has_not_ended() -> None:
    """A replay had no room for it: Volcano, say, tells at times that it does not know yet."""
    log = Log()
    recorder = DemandRecorder(log, KEEP_SECONDS, log.counts.append)
    refused = made("batch", scheduler_name="volcano")
    tried = replace(refused, left_to_scheduler=True)
    for after, pod in enumerate((tried, refused, tried, refused, tried)):
        record(recorder, pod, after=30 * after)
    assert [(pod.at, pod.until) for pod in log.pods().values()] == [
        (NOW + timedelta(seconds=30), None)
    ]
    record(recorder, after=150)
    assert log.pods()["uid-ns-batch"].until == NOW + timedelta(seconds=150)
