"""Simulations: the real loop on demand in virtual time, and what is reported of it."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from reconciler.model.cluster import Owner, Pod
from reconciler.model.demand import (
    BudgetDemand,
    ControllerDemand,
    CronDemand,
    DemandLine,
    FaultDemand,
    PodDemand,
)
from reconciler.model.errors import InputError
from reconciler.model.frozen import FrozenMap
from reconciler.planner.settings import PlannerSettings
from reconciler.records.demand import folded
from reconciler.simulation.chances import Chances
from reconciler.simulation.report import report, report_files
from reconciler.simulation.simulation import LEAD_SECONDS, Options, Result, Simulation
from tests.builders import idle, make_fleet_settings, make_settings, make_spec, selecting

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
SPEC = make_spec("1", "2Gi")
CALM = Chances(interruptions_per_hour=0, capacity_errors_per_day=0)
OPTIONS = Options(days=0.05, chances=CALM)


def settings(**changed: Any) -> PlannerSettings:
    """A sector of a small spot fleet and a large on-demand one."""
    scale_in = idle(600)
    return make_settings(
        make_fleet_settings(price="0.10", scale_in=scale_in),
        make_fleet_settings("large", cpu=16, memory="64Gi", price="0.60", spot=False,
                            scale_in=scale_in),
        search_budget_seconds=0.0, **changed,
    )  # fmt: skip


def after(seconds: float) -> datetime:
    """So long after the first line."""
    return AT + timedelta(seconds=seconds)


def jobs(count: int, **changed: Any) -> list[PodDemand]:
    """One pod a minute, each for ten minutes."""
    return [
        PodDemand(at=after(60 * n), id=f"job-{n}", spec=SPEC, ran_seconds=600.0,
                  controller=Owner(kind="Job", name=f"job-{n}"), **changed)
        for n in range(count)
    ]  # fmt: skip


def web(at: float = 0, **changed: Any) -> ControllerDemand:
    """A change of the Deployment `web`."""
    owner = Owner(kind=changed.pop("kind", "Deployment"), name="web")
    return ControllerDemand(at=after(at), controller=owner, **changed)


def simulation(lines: Iterable[DemandLine], options: Options = OPTIONS) -> Simulation:
    """The lines, ready to be played."""
    return Simulation(folded(lines), settings(), options)


def played(lines: Iterable[DemandLine], options: Options = OPTIONS) -> Result:
    """The lines, played."""
    return simulation(lines, options).run()


def pods_after(lines: Iterable[DemandLine], seconds: float = 1200) -> list[Pod]:
    """The pods in the cluster so long after the first line."""
    made = simulation(lines, replace(OPTIONS, days=seconds / 86_400))
    made.run()
    return made.world.pods()


def test_demand_with_a_wrong_year_in_it_is_refused_unless_days_are_reported() -> None:
    """One line of 1970 made a simulation of half a century that did not end."""
    lines = [*jobs(1), PodDemand(at=datetime(1970, 1, 1, tzinfo=UTC), id="old", spec=SPEC)]
    with pytest.raises(InputError, match=r"from 1970-01-01 to 2026-03-01; at most 3,660"):
        simulation(lines, replace(OPTIONS, days=None))
    assert simulation(lines).seconds == LEAD_SECONDS + 0.05 * 86_400


def test_report_of_the_same_input_has_the_same_bytes() -> None:
    """A comparison of two configs means nothing when chance differs between two runs."""
    options = replace(OPTIONS, chances=Chances(interruptions_per_hour=2, capacity_errors_per_day=9))
    runs = [[("a", played(jobs(20), options))] for _ in range(2)]
    first, second = (report_files(report(run), run) for run in runs)
    assert first == second
    assert {"report.json", "report.html", "moments/a-1/cluster.json"} <= first.keys()
    assert b"<script" not in first["report.html"]
    assert b"http://" not in first["report.html"].replace(b"http://www.w3.org", b"")


def test_another_seed_has_another_course() -> None:
    """Distributions that are stated and not drawn would be decoration."""
    found = [
        played(jobs(20), replace(OPTIONS, chances=replace(CALM, seed=seed))).history.waits
        for seed in (1, 2)
    ]
    assert found[0] != found[1]


def test_instances_that_are_launched_together_join_each_at_its_own_time() -> None:
    """One draw for all of a burst made it as slow, or as fast, as a single node."""
    pods = [PodDemand(at=AT, id=f"x-{n}", spec=make_spec("3", "2Gi")) for n in range(4)]
    made = simulation(pods, replace(OPTIONS, days=0.01))
    made.run()
    launches = made.world.fleets.launches
    joined = {node.instance_id: node.created_at for node in made.world.nodes()}
    taken = [
        ((joined[instance] or AT) - made.history.at(begin)).total_seconds()
        for instance, _, begin in launches
    ]
    assert len(launches) > 2
    drawn = [CALM.launch_seconds(n) + CALM.join_seconds(n) for n in range(len(launches))]
    assert taken == pytest.approx(drawn, abs=1e-3)


def test_jobs_wait_for_a_boot_run_to_their_end_and_cost_more_than_the_bound() -> None:
    """The figures that a person decides by."""
    found = report([("a", played(jobs(20)))])["runs"][0]
    assert found["pods"] == found["waiting"]["pods"] == 20
    assert found["waiting"]["without_a_node_at_the_end"] == found["jobs_ended_early"] == 0
    assert 20 < found["waiting"]["max_seconds"] < 120
    assert 0 < found["cost"]["usd_lower_bound"] < found["cost"]["usd"]
    by_day = found["cost"]["by_day"]
    assert sum(each["usd"] for each in by_day) == pytest.approx(found["cost"]["usd"], abs=0.01)
    small = next(fleet for fleet in found["fleets"] if fleet["fleet"] == "primary-small")
    assert small["usd"] == pytest.approx(0.10 * small["node_hours"], abs=0.001)


def test_bound_of_jobs_that_fill_nodes_is_what_these_cost() -> None:
    """Four cores of the cheapest fleet for two hours, known by hand."""
    lines = [
        PodDemand(at=AT, id=f"x-{n}", spec=make_spec("2", "8Gi"), ran_seconds=7200.0)
        for n in range(2)
    ]
    found = report([("a", played(lines, replace(OPTIONS, days=0.2)))])["runs"][0]
    assert found["cost"]["usd_lower_bound"] == pytest.approx(0.20, rel=1e-6)


def test_bound_does_not_count_what_each_node_brings() -> None:
    """Pods of DaemonSets on idle nodes put the bound above what another config really cost."""
    agents = web(kind="DaemonSet", spec=make_spec("1", "1Gi"))
    found = [
        report([("a", played([*jobs(5), *more]))])["runs"][0]["cost"]["usd_lower_bound"]
        for more in ([], [agents])
    ]
    assert found[1] == pytest.approx(found[0], rel=1e-6)


def test_spot_interruptions_are_drawn_and_their_pods_begin_again() -> None:
    """Half of what people fear of spot is what this shows."""
    options = replace(OPTIONS, chances=replace(CALM, interruptions_per_hour=6))
    found = report([("a", played(jobs(20), options))])["runs"][0]
    assert found["interruptions"] > 0
    assert found["evictions"]
    assert found["jobs_ended_early"] > 0


def test_fault_without_capacity_makes_pods_wait() -> None:
    """A recorded afternoon of InsufficientInstanceCapacity is played again."""
    fault = FaultDemand(at=AT, fault="capacity", until=after(900))
    found = report([("a", played([fault, *jobs(2)]))])["runs"][0]
    assert found["waiting"]["max_seconds"] > 900


def test_deployment_is_scaled_rolled_out_and_deleted() -> None:
    """Autoscaling and rollouts are most of the changes of a cluster of services."""
    lines = [web(replicas=3, spec=SPEC), web(300, replicas=6)]
    assert sum(pod.ready for pod in pods_after(lines)) == 6
    new = make_spec("500m", "2Gi")
    rolled = pods_after([*lines, web(600, spec=new)])
    assert {pod.spec for pod in rolled} == {new}
    assert len(rolled) == 6
    assert pods_after([*lines, web(600, deleted=True)]) == []


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
@pytest.mark.parametrize("key", ["labels", "annotations"])
def test_template_with_other_labels_or_annotations_is_rolled_out(kind: str, key: str) -> None:
    """`kubectl rollout restart` changes an annotation of the template and nothing else."""
    old, new = FrozenMap({"at": "noon"}), FrozenMap({"at": "night"})
    lines = [web(kind=kind, replicas=3, spec=SPEC, labels=old), web(300, kind=kind, **{key: new})]
    before, after = pods_after(lines, 290), pods_after(lines)
    assert [getattr(pod, key) for pod in after] == [new] * 3
    assert not {pod.key for pod in before} & {pod.key for pod in after}


def test_line_that_repeats_a_template_is_no_rollout() -> None:
    """Recordings say all of a controller each time it is scaled."""
    told: dict[str, Any] = {
        "labels": FrozenMap({"app": "web"}), "annotations": FrozenMap({"a": "b"}),
    }  # fmt: skip
    line = web(replicas=3, spec=SPEC, **told)
    again: dict[str, Any] = {key: FrozenMap(dict(value)) for key, value in told.items()}
    repeated = web(300, replicas=3, spec=make_spec("1", "2Gi"), **again)
    assert {p.key for p in pods_after([line, repeated])} == {p.key for p in pods_after([line])}


def test_rollout_never_goes_below_what_may_be_unavailable() -> None:
    """Old pods go only as fast as new ones are ready."""
    lines = [web(replicas=8, spec=SPEC), web(600, spec=make_spec("1500m", "2Gi"))]
    made = simulation(lines)
    least = []
    for second in range(5, 1200, 5):
        made.process.run_until(second)
        if second > 590:
            least.append(sum(pod.ready and not pod.deleting for pod in made.world.pods()))
    assert min(least) >= 6


@pytest.mark.parametrize("replicas", [10, 1])
def test_rollout_that_begins_while_pods_wait_ends_at_the_replicas(replicas: int) -> None:
    """Old pods that were not ready were all removed at once, and never made up for."""
    template = make_spec("900m", "2Gi")
    pods = pods_after([web(replicas=replicas, spec=SPEC), web(10, spec=template)])
    assert [pod.spec for pod in pods] == [template] * replicas


def test_old_pods_are_left_while_the_new_ones_find_no_node() -> None:
    """A template that fits nowhere takes a quarter of the pods and no more."""
    template = make_spec("900", "2Gi")
    pods = pods_after([web(replicas=8, spec=SPEC), web(600, spec=template)], 1800)
    assert sum(pod.ready and pod.spec == SPEC for pod in pods) == 6
    assert sum(pod.spec == template for pod in pods) == 4


def test_deployment_is_scaled_while_it_rolls_out() -> None:
    """Both take place: a scale line is no end of the rollout, and the surge is no pod too many."""
    template = make_spec("500m", "2Gi")
    lines = [web(replicas=8, spec=SPEC), web(300, spec=template), web(303, replicas=3)]
    assert [pod.spec for pod in pods_after(lines)] == [template] * 3
    gone = pods_after([*lines, web(304, deleted=True), web(306, replicas=2, spec=SPEC)])
    assert [pod.spec for pod in gone] == [SPEC] * 2


def test_pod_line_of_a_stateful_set_may_have_any_name() -> None:
    """Recorded pods are named by their UIDs; the set's own pods go before such a one."""
    lines: list[DemandLine] = [
        web(kind="StatefulSet", replicas=2, spec=SPEC),
        PodDemand(at=AT, id="x", spec=SPEC, controller=Owner(kind="StatefulSet", name="web")),
        web(300, kind="StatefulSet", replicas=2),
    ]
    assert [pod.key.name for pod in pods_after(lines)] == ["web-0", "x"]


def test_pods_whose_ids_make_one_name_are_two_pods() -> None:
    """`ci/x` and `x` in the namespace `ci`, or `a/b` and `a.b`, were one pod, the first lost."""
    ids = ["ci/x", "x", "a/b", "a.b", "1"]
    found = pods_after([PodDemand(at=AT, id=each, spec=SPEC, namespace="ci") for each in ids])
    assert [pod.key.name for pod in found] == ["1", "a.b", "a.b.2", "x", "x.2"]


def test_stateful_set_keeps_its_ordinals() -> None:
    """Its highest goes first, and each pod is replaced under its own name."""
    lines = [
        web(kind="StatefulSet", replicas=3, spec=SPEC),
        web(400, kind="StatefulSet", spec=make_spec("500m", "1Gi")),
        web(800, kind="StatefulSet", replicas=2),
    ]
    found = pods_after(lines)
    assert [pod.key.name for pod in found] == ["web-0", "web-1"]
    assert {pod.spec.requests["cpu"] for pod in found} == {500}


def test_daemon_set_runs_on_every_node_and_counts_for_no_wait() -> None:
    """Its pods follow nodes, not the other way round."""
    lines: list[DemandLine] = [web(kind="DaemonSet", spec=make_spec("100m", "64Mi")), *jobs(5)]
    made = simulation(lines, replace(OPTIONS, days=400 / 86_400))
    found = made.run()
    nodes = {node.name for node in made.world.nodes()}
    assert {pod.node_name for pod in made.world.pods() if pod.daemon} == nodes != set()
    assert len(found.history.waits) == 5


@pytest.mark.parametrize("template", ["1", "1100m"], ids=["unchanged", "rollout"])
def test_line_of_a_daemon_set_leaves_its_room_to_nobody_else(template: str) -> None:
    """Recordings repeat all DaemonSets at midnight, and pods that had no room got theirs."""
    config = make_settings(make_fleet_settings(max_capacity=1), search_budget_seconds=0.0)
    lines: list[DemandLine] = [
        web(kind="DaemonSet", spec=make_spec("1", "1Gi")),
        PodDemand(at=AT, id="a", spec=make_spec("2500m", "1Gi")),
        PodDemand(at=after(1), id="b", spec=SPEC),
        web(1800, kind="DaemonSet", spec=make_spec(template, "1Gi")),
    ]
    made = Simulation(folded(lines), config, OPTIONS)
    result = made.run()
    assert result.history.waiting == 1
    (agent,) = [pod for pod in made.world.pods() if pod.daemon]
    assert agent.spec == make_spec(template, "1Gi")


def test_cron_job_starts_by_its_schedule_until_it_ends() -> None:
    """Most of a night's load."""
    cron = CronDemand(at=AT, id="c", schedule="*/10 * * * *", spec=SPEC, pods=3,
                      ran_seconds=30.0, until=after(1500))  # fmt: skip
    assert played([cron]).history.created == 6


def test_pod_that_its_owner_deletes_is_gone_wherever_it_is_by_then() -> None:
    """Recorded pods of services end when they ended."""
    pod = PodDemand(at=AT, id="web/api-1", namespace="web", spec=SPEC, until=after(600))
    assert [each.key.name for each in pods_after([pod], 500)] == ["api-1"]
    assert pods_after([pod], 700) == []


def test_pod_that_is_deleted_while_it_waits_counts_with_its_wait() -> None:
    """Nobody serves it: a report without it would praise the config that does so."""
    whole = make_spec("900", "2Gi")
    lines = [
        PodDemand(at=AT, id="large", spec=whole, until=after(600),
                  controller=Owner(kind="ReplicaSet", name="web")),
        PodDemand(at=AT, id="larger", spec=whole),
        PodDemand(at=AT, id="small", spec=SPEC),
        PodDemand(at=AT, id="agent", spec=whole, controller=Owner(kind="DaemonSet", name="agent")),
    ]  # fmt: skip
    found = report([("a", played(lines))])["runs"][0]
    waiting = found["waiting"]
    assert (found["pods"], waiting["pods"]) == (3, 2)
    assert waiting["deleted_without_a_node"] == waiting["without_a_node_at_the_end"] == 1
    assert waiting["max_seconds"] == pytest.approx(600, abs=1)
    workload = next(w for w in waiting["workloads"] if w["workload"] == "ReplicaSet default/web")
    assert (workload["pods"], workload["deleted_without_a_node"]) == (1, 1)


def test_every_pod_that_was_created_is_in_the_figures_once() -> None:
    """Whatever becomes of it: evicted, replaced, scaled away while it waits, never served."""
    template, huge = make_spec("2", "2Gi"), make_spec("900", "2Gi")
    lines: list[DemandLine] = [
        *jobs(20),
        web(replicas=30, spec=SPEC),
        web(20, spec=template),
        web(40, replicas=4),
        web(600, spec=SPEC),
        web(900, kind="StatefulSet", replicas=4, spec=SPEC),
        web(1500, kind="StatefulSet", spec=template),
        web(1520, kind="StatefulSet", replicas=2),
        PodDemand(at=AT, id="huge", spec=huge),
        PodDemand(at=AT, id="gone", spec=huge, until=after(30)),
    ]
    chances = replace(CALM, interruptions_per_hour=5)
    found = report([("a", played(lines, replace(OPTIONS, chances=chances)))])["runs"][0]
    waiting = found["waiting"]
    assert found["interruptions"] > 0
    assert waiting["deleted_without_a_node"] > 1
    assert found["pods"] == waiting["pods"] + waiting["without_a_node_at_the_end"]


def test_budget_in_percent_holds_for_as_many_pods_as_there_are() -> None:
    """Budgets of services that autoscale are written in percent."""
    budget = BudgetDemand(at=AT, id="web", selector=selecting(app="web"), max_unavailable="25%")
    lines: list[DemandLine] = [web(replicas=8, spec=SPEC, labels=FrozenMap({"app": "web"})), budget]
    made = simulation(lines, replace(OPTIONS, days=600 / 86_400))
    made.run()
    (found,) = made.world.objects.budgets.now()
    assert (found.desired_healthy, found.disruptions_allowed) == (6, 2)


def test_two_configs_are_compared() -> None:
    """What a person opens the report for."""
    dear = make_settings(make_fleet_settings(price="0.20"), search_budget_seconds=0.0)
    results = [
        ("a", played(jobs(5))),
        ("b", Simulation(folded(jobs(5)), dear, OPTIONS).run()),
    ]
    rows = {row["what"]: row for row in report(results)["differences"]}
    assert rows["cost per day"]["b"] > 1.5 * rows["cost per day"]["a"]
    page = report_files(report(results), results)["report.html"].decode()
    assert page.index("What changes") < page.index("Nodes by fleet")


def test_demand_without_a_line_is_refused() -> None:
    """An empty file is a mistake, and no cheap month."""
    with pytest.raises(InputError, match="it is empty"):
        simulation([])
