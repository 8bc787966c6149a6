"""What the recorder writes down of a loop's snapshots."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from reconciler.loops.reporters.demand_recorder import DemandRecorder
from reconciler.model.demand import FleetFact, NodeFact
from reconciler.model.ids import NodeName, Region
from reconciler.planner.placement.kinds import INSTANCE_TYPE
from reconciler.planner.planner import plan
from reconciler.simulation.chances import Chances
from reconciler.simulation.simulation import Options, Simulation
from tests.builders import (
    HOME,
    NOW,
    amounts,
    labelled,
    make_cloud,
    make_fleet,
    make_fleet_settings,
    make_instance,
    make_node,
    make_pod,
    make_settings,
    make_snapshot,
)
from tests.unit.loops.reporters.demand_log import KEEP_SECONDS, SETTINGS, Log, made, record

AD_1 = datetime(1, 1, 3, tzinfo=UTC)


def test_pod_is_recorded_with_its_spec_from_its_creation_until_it_is_deleted() -> None:
    """A replay would ask for other pods than the cluster did."""
    log = Log()
    recorder = DemandRecorder(log, KEEP_SECONDS, log.counts.append)
    pod = made("web", cpu="500m", labels={"app": "web"})
    record(recorder, after=-10)
    record(recorder, pod)
    record(recorder, pod, after=30)
    record(recorder, after=60)
    (recorded,) = log.pods().values()
    assert recorded.spec == pod.spec
    assert recorded.labels == pod.labels
    assert recorded.at == NOW - timedelta(seconds=5)
    assert recorded.until == NOW + timedelta(seconds=60)
    assert log.lines.count(b'"kind":"pod"') == 1


def test_finished_pod_is_recorded_with_how_long_it_ran() -> None:
    """A replay would let batch work end at a time of day, however long it waited."""
    log = Log()
    recorder = DemandRecorder(log, KEEP_SECONDS, log.counts.append)
    record(recorder, made("job", owner="Job"))
    began, ended = NOW + timedelta(seconds=10), NOW + timedelta(seconds=52)
    finished = made("job", owner="Job", phase="Succeeded", started_at=began, finished_at=ended)
    record(recorder, finished, after=60)
    (recorded,) = log.pods().values()
    assert recorded.ran_seconds == 42
    assert recorded.until is None


def test_finished_pod_is_recorded_with_how_long_it_stayed() -> None:
    """Gone sooner or later than it was, a replay's nodes would count their idle time otherwise."""
    log = Log()
    recorder = DemandRecorder(log, KEEP_SECONDS, log.counts.append)
    began, ended = NOW + timedelta(seconds=10), NOW + timedelta(seconds=52)
    finished = made("job", owner="Job", phase="Succeeded", started_at=began, finished_at=ended)
    record(recorder, made("job", owner="Job"))
    record(recorder, finished, after=60)
    assert log.pods()["uid-ns-job"].kept_seconds is None
    record(recorder, after=115)
    (recorded,) = log.pods().values()
    assert (recorded.ran_seconds, recorded.kept_seconds, recorded.until) == (42, 63, None)


def test_what_nodes_offer_is_recorded_by_fleet_and_type() -> None:
    """A replay on nodes as the config estimates them would need others than there were."""
    log = Log()
    recorder = DemandRecorder(log, KEEP_SECONDS, log.counts.append)
    settings = make_fleet_settings("small")
    fleet = make_fleet(settings, 1)
    offered = amounts(cpu="3920m", memory="29Gi", pods=58)
    node = make_node("n", settings, allocatable=offered)
    joining = make_node("joining", settings, ready=False, allocatable=amounts(cpu="1"))
    other = make_node("other", labels=labelled(**{INSTANCE_TYPE: "m7i.large"}), allocatable=offered)
    cloud = make_cloud(fleet, instances=[make_instance(node, fleet)])
    for after in (0, 30):
        snapshot = make_snapshot(
            node, joining, other, cloud=cloud, at=NOW + timedelta(seconds=after)
        )
        recorder.plan_made(snapshot, plan(snapshot, SETTINGS))
    facts = [line for line in log.demand().lines if isinstance(line, NodeFact)]
    assert {(fact.fleet, fact.instance_type, fact.allocatable) for fact in facts} == {
        ("primary-small", "small.type", offered),
        ("", "m7i.large", offered),
    }
    assert len(facts) == 2


def test_pods_that_come_with_nodes_and_names_of_pods_are_not_recorded() -> None:
    """A replay would count what each node brings by itself, and the file would name pods."""
    log = Log()
    recorder = DemandRecorder(log, KEEP_SECONDS, log.counts.append)
    fargate = made("fargate", scheduler_name="fargate-scheduler")
    tried = made("tried", scheduler_name="volcano", left_to_scheduler=True)
    agent, static = made("agent", owner="DaemonSet"), made("static", mirror=True)
    record(recorder, agent, static, fargate, tried, made("web"))
    ended = replace(
        fargate, phase="Succeeded", node_name=NodeName("fargate-ip-10-0-0-7"),
        started_at=NOW, finished_at=NOW + timedelta(seconds=20),
    )  # fmt: skip
    record(recorder, agent, static, ended, tried, made("web"), after=30)
    assert list(log.pods()) == ["uid-ns-web"]
    assert b'"web"' not in log.lines


def test_lines_that_the_log_did_not_take_are_reported_with_the_next_plan() -> None:
    """A slow disk would leave holes in the record."""
    log = Log()
    recorder = DemandRecorder(log, KEEP_SECONDS, log.counts.append)
    first, second = made("first"), made("second")
    record(recorder, first)
    log.refuses = True
    record(recorder, second, after=30)
    log.refuses = False
    record(recorder, second, after=60)
    pods = log.pods()
    assert set(pods) == {"uid-ns-first", "uid-ns-second"}
    assert pods["uid-ns-first"].until == NOW + timedelta(seconds=60)
    assert log.counts == ["taken", "behind", "taken"]


def test_record_lasts_for_as_long_as_was_recorded_though_nothing_changes() -> None:
    """A steady cluster's recording of days ended with its last change, and so did its replay."""
    log = Log()
    recorder = DemandRecorder(log, KEEP_SECONDS, log.counts.append)
    pod = made("web")
    for minute in range(62):
        record(recorder, pod, after=60 * minute)
    assert log.demand().end == NOW + timedelta(hours=1)
    assert set(log.pods()) == {"uid-ns-web"}
    assert log.lines.count(b"end-of-recording") == 12
    settings = make_settings(make_fleet_settings("small", price="0.10"))
    calm = Chances(interruptions_per_hour=0, capacity_errors_per_day=0)
    replayed = Simulation(log.demand(), settings, Options(chances=calm)).run()
    assert (replayed.pods, round(replayed.seconds)) == (1, 3601)


def test_each_day_begins_with_everything_that_is_there() -> None:
    """The files that are left after the oldest went would miss every pod that was there before."""
    log = Log()
    recorder = DemandRecorder(log, KEEP_SECONDS, log.counts.append)
    stays, goes = made("stays"), made("goes")
    record(recorder, stays, goes)
    first_day, log.lines = log.lines, b""
    record(recorder, stays, after=86_400)
    assert set(log.pods()) == {"uid-ns-stays"}
    log.lines = first_day + log.lines
    assert log.pods()["uid-ns-goes"].until is not None
    assert log.pods()["uid-ns-stays"].until is None


def test_replay_of_a_day_begins_when_its_recording_did() -> None:
    """A day was simulated as the weeks since its oldest pod was created."""
    log = Log()
    recorder = DemandRecorder(log, KEEP_SECONDS, log.counts.append)
    day = timedelta(days=1)
    old, waits = (make_pod(name, created_at=NOW - 400 * day) for name in ("old", "waits"))
    job = make_pod("job", owner="Job", created_at=NOW - 5 * day, started_at=NOW - 5 * day)
    ended = make_pod("ended", owner="Job", phase="Succeeded", created_at=NOW - 5 * day,
                     started_at=NOW - 5 * day, finished_at=NOW - 4 * day)  # fmt: skip
    done = replace(job, phase="Succeeded", finished_at=NOW + timedelta(hours=1))
    ran = replace(waits, phase="Succeeded", started_at=NOW + timedelta(hours=2),
                  finished_at=NOW + timedelta(hours=5))  # fmt: skip
    record(recorder, old, waits, job, ended)
    record(recorder, old, waits, done, after=3_600)
    record(recorder, old, ran, after=5 * 3_600)
    first_day, log.lines = log.lines, b""
    record(recorder, old, made("late"), after=86_400)
    assert log.demand().begin == NOW + day
    assert log.pods().keys() == {"uid-ns-old", "uid-ns-late"}
    for recorded in (first_day + log.lines, log.lines + first_day):
        log.lines = recorded
        assert log.demand().begin == NOW
        assert {id_: (pod.at, pod.ran_seconds) for id_, pod in log.pods().items()} == {
            "uid-ns-old": (NOW, None),
            "uid-ns-waits": (NOW, 3 * 3_600),
            "uid-ns-job": (NOW, 3_600),
            "uid-ns-late": (NOW, None),
        }


def test_day_that_does_not_say_when_it_began_is_read_with_those_that_do() -> None:
    """Days of an earlier version would be cut off when they are put together with later ones."""
    log = Log()
    old = make_pod("old", created_at=NOW - timedelta(days=2))
    record(DemandRecorder(log, KEEP_SECONDS, log.counts.append), old)
    earlier = b"".join(line for line in log.lines.splitlines(True) if b"begin-of" not in line)
    log.lines = b""
    record(DemandRecorder(log, KEEP_SECONDS, log.counts.append), old, after=86_400)
    log.lines = earlier + log.lines
    assert log.demand().begin == NOW - timedelta(days=2)


def test_target_of_a_fleet_in_several_regions_is_that_of_all_of_them() -> None:
    """That of the last region was written, mostly 0, and a replay agreed with nothing."""
    log = Log()
    recorder = DemandRecorder(log, KEEP_SECONDS, log.counts.append)
    regions = (HOME, Region("eu-west-1"))
    small = make_fleet_settings("small", min_capacity=3, regions=regions)
    settings = make_settings(small, regions=regions)
    fleets = [make_fleet(small, 3 - n, region=r) for n, r in enumerate(regions)]
    snapshot = make_snapshot(cloud=make_cloud(*fleets))
    planned = plan(snapshot, settings)
    assert {fleet.region: fleet.target for fleet in planned.fleets} == dict(
        zip(regions, (3, 2), strict=True)
    )
    recorder.plan_made(snapshot, planned)
    (fact,) = [line for line in log.demand().lines if isinstance(line, FleetFact)]
    assert (fact.target, fact.joined) == (5, 0)


def test_recorded_demand_replayed_under_the_same_config_asks_for_as_many_nodes() -> None:
    """A record that no simulation can play, or that asks for less, would be of no use."""
    log = Log()
    recorder = DemandRecorder(log, KEEP_SECONDS, log.counts.append)
    settings = make_settings(make_fleet_settings("small", price="0.10"))
    pods = [made(f"web-{number}", cpu="1", memory="2Gi") for number in range(10)]
    snapshot = make_snapshot(*pods, at=NOW)
    planned = plan(snapshot, settings)
    recorder.plan_made(snapshot, planned)
    calm = Chances(interruptions_per_hour=0, capacity_errors_per_day=0)
    replayed = Simulation(log.demand(), settings, Options(days=0.02, chances=calm)).run()
    (fleet,) = planned.fleets
    assert fleet.target > 1
    assert replayed.pods == len(pods)
    assert max(target for _, target in replayed.targets[fleet.fleet]) == fleet.target
    assert [fact.target for fact in replayed.facts] == [fleet.target]


def test_pod_that_came_and_ended_between_two_plans_is_recorded_with_its_end() -> None:
    """Short Jobs, and those that ran while the API server was away, would ask for nothing."""
    log = Log()
    recorder = DemandRecorder(log, KEEP_SECONDS, log.counts.append)
    began, ended = NOW + timedelta(seconds=2), NOW + timedelta(seconds=8)
    short = make_pod(
        "short", owner="Job", phase="Succeeded", created_at=NOW + timedelta(seconds=1),
        started_at=began, finished_at=ended,
    )  # fmt: skip
    record(recorder, made("web"))
    record(recorder, made("web"), short, after=10)
    record(recorder, made("web"), short, after=20)
    recorded = log.pods()["uid-ns-short"]
    assert (recorded.at, recorded.ran_seconds) == (NOW + timedelta(seconds=1), 6)
    assert log.lines.count(b"uid-ns-short") == 2
    record(recorder, made("web"), after=600)
    assert log.pods()["uid-ns-short"].kept_seconds == 592


def test_what_a_tenant_can_write_never_makes_a_recording_unreadable() -> None:
    """One pod would spoil the days of all others."""
    log = Log()
    recorder = DemandRecorder(log, KEEP_SECONDS, log.counts.append)
    year = timedelta(days=365)
    hostile = (
        made("sum", memory="20Ei"),
        made("owner", owner="Job" * 1_000),
        made("old", owner="Job", phase="Succeeded", started_at=NOW - 50 * year, finished_at=NOW),
        made("first", owner="Job", phase="Failed", started_at=AD_1, finished_at=AD_1),
        made("late", owner="Job", phase="Failed", started_at=NOW, finished_at=NOW + 5_000 * year),
        make_pod("future", created_at=NOW + 300 * year),
    )
    record(recorder, made("web"), *hostile)
    record(recorder, after=60)
    there = {"web", "sum", "owner", "late", "future"}
    assert log.pods().keys() == {f"uid-ns-{name}" for name in there}
    assert log.demand().end <= NOW + timedelta(seconds=60)


def test_pod_that_was_resized_in_place_is_recorded_with_its_new_requests() -> None:
    """They were recorded at midnight only: a replay of the day had room for the old ones."""
    log = Log()
    recorder = DemandRecorder(log, KEEP_SECONDS, log.counts.append)
    record(recorder, made("web", cpu="500m"))
    record(recorder, made("web", cpu="8"), after=60)
    record(recorder, made("web", cpu="8"), after=90)
    (pod,) = log.pods().values()
    assert (pod.at, pod.spec.requests["cpu"]) == (NOW, 8000)
    assert log.lines.count(b'"kind":"pod"') == 2
