"""A replay beside the targets that were recorded together with its demand."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from reconciler.model.demand import DemandLine, FleetFact, NodeFact, PodDemand
from reconciler.planner.system_reserve import SystemReserve
from reconciler.records.demand import folded, recorded_from
from reconciler.simulation.chances import Chances
from reconciler.simulation.offers import offers_of
from reconciler.simulation.report import report, report_files
from reconciler.simulation.simulation import Options, Result, Simulation
from tests.builders import amounts, idle, make_fleet_settings, make_settings, make_spec

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
OPTIONS = Options(days=0.05, chances=Chances(interruptions_per_hour=0, capacity_errors_per_day=0))
PODS = [
    PodDemand(at=AT + timedelta(minutes=n), id=f"p{n}", spec=make_spec("3", "2Gi"), ran_seconds=600)
    for n in range(20)
]


def played(lines: Iterable[DemandLine]) -> Result:
    """The lines under a config with one fleet."""
    settings = make_settings(make_fleet_settings(scale_in=idle(600)), search_budget_seconds=0.0)
    return Simulation(folded(lines), settings, OPTIONS).run()


def node_seconds(result: Result) -> float:
    """For how long all nodes were there, together."""
    return sum(launch.end - launch.begin for launch in result.launches)


def facts(result: Result, times: int = 1) -> list[FleetFact]:
    """The targets of a simulation as a recorder would have written them, or a multiple of them."""
    return [
        FleetFact(at=result.start + timedelta(seconds=at), fleet=fleet, target=times * target)
        for fleet, steps in result.targets.items()
        for at, target in steps
        if at >= 1  # the demand begins then
    ]


def recorded(lines: Iterable[DemandLine]) -> Any:
    """What the report says of it."""
    result = played(lines)
    found = report([("sectors.yaml", result)])
    html = report_files(found, [("sectors.yaml", result)])["report.html"].decode()
    assert "Targets, recorded and replayed" in html
    return found["runs"][0]["recorded"]


def test_replay_with_the_recorded_targets_overlaps_whole() -> None:
    """If the same targets were not reported as the same, no difference could be believed."""
    before = played(PODS)
    found = recorded([*PODS, *facts(before)])
    assert found["overlap"] == 1.0
    (fleet,) = found["fleets"]
    assert fleet["node_hours_apart"] == 0
    assert fleet["node_hours_recorded"] == fleet["node_hours_simulated"] > 1
    assert found["series"]["recorded"] == found["series"]["simulated"]
    assert max(found["series"]["recorded"][fleet["fleet"]]) == max(
        target for _, target in before.targets[fleet["fleet"]]
    )


def test_targets_of_another_size_overlap_by_their_ratio() -> None:
    """Twice the nodes for the same work is half an agreement, not a perfect one in shape."""
    found = recorded([*PODS, *facts(played(PODS), times=2)])
    assert found["overlap"] == 0.5
    (fleet,) = found["fleets"]
    assert fleet["node_hours_apart"] == fleet["node_hours_simulated"]


def test_fleet_counts_from_its_first_record_on() -> None:
    """What was before the recorder started is not known, and no disagreement."""
    late = [fact for fact in facts(played(PODS)) if fact.at >= AT + timedelta(minutes=10)]
    assert recorded([*PODS, *late])["overlap"] == 1.0


def test_without_recorded_targets_nothing_is_said() -> None:
    """A trace tells of no fleet, and another config's fleets may have other names."""
    unknown = [replace(fact, fleet="elsewhere") for fact in facts(played(PODS))]
    told: tuple[list[DemandLine], ...] = ([*PODS], [*PODS, *unknown])
    for lines in told:
        found = report([("sectors.yaml", played(lines))])
        assert "recorded" not in found["runs"][0]


@pytest.mark.parametrize("fleet", ["primary-small", "", "another-fleet"])
def test_nodes_offer_what_was_recorded_of_their_type(fleet: str) -> None:
    """A config's estimate may leave out what kubelet leaves in: a replay would keep more nodes."""
    at_once = [replace(pod, at=AT) for pod in PODS]
    estimated = played(at_once)
    (offer,) = estimated.offers
    larger = amounts(cpu="12", memory="60Gi", pods=58)
    fact = NodeFact(at=AT, fleet=fleet, instance_type=offer.instance_type, allocatable=larger)
    found = played([*at_once, fact])
    assert [each.allocatable for each in found.offers] == [larger]
    assert node_seconds(found) < 0.75 * node_seconds(estimated)


def test_nodes_of_a_group_offer_what_eks_leaves_unless_the_config_states_a_reserve() -> None:
    """A simulation would buy other nodes than the plan that it foretells."""
    group = make_fleet_settings(provider="asg", auto_scaling_group="workers")
    for as_eks, cpu in (({"cpu", "memory"}, "3920m"), ({"memory"}, "3"), (set[str](), "3")):
        reserve = SystemReserve(amounts=amounts(cpu=1), groups_as_eks=frozenset(as_eks))
        (offer,) = offers_of(make_settings(group, reserve=reserve))
        assert offer.allocatable["cpu"] == amounts(cpu=cpu)["cpu"]
        tagged = replace(
            group, options=(replace(group.options[0], allocatable=amounts(cpu="3500m")),)
        )
        (offer,) = offers_of(make_settings(tagged, reserve=reserve))
        assert offer.allocatable["cpu"] == amounts(cpu="3500m")["cpu"], "as tags of the group state"


def test_nodes_of_the_fleet_itself_count_before_others_of_the_type() -> None:
    """Fleets may reserve different shares of the same machine."""
    own, others = amounts(cpu="12", pods=58), amounts(cpu="2", pods=58)
    fact = NodeFact(at=AT, fleet="primary-small", instance_type="small.type", allocatable=own)
    later = replace(fact, at=AT + timedelta(hours=1), fleet="other", allocatable=others)
    assert [offer.allocatable for offer in played([*PODS, fact, later]).offers] == [own]


@pytest.mark.parametrize("gpus", [{}, {"nvidia.com/gpu": 0}])
def test_node_whose_plugin_has_not_registered_yet_takes_no_devices_away(
    gpus: dict[str, int],
) -> None:
    """A recording that ended half a minute after a GPU node joined had no GPU in its replay."""
    offered = amounts(cpu="12", memory="60Gi", pods=58, **{"nvidia.com/gpu": 1})
    fact = NodeFact(at=AT, fleet="primary-small", instance_type="small.type", allocatable=offered)
    young = amounts(cpu="11", memory="60Gi", pods=58, **gpus)
    later = replace(fact, at=AT + timedelta(hours=1), allocatable=young)
    for fleet in ("primary-small", ""):
        told = [replace(node_fact, fleet=fleet) for node_fact in (fact, later)]
        (offer,) = played([*PODS, *told]).offers
        assert offer.allocatable == {**young, "nvidia.com/gpu": 1}


def test_finished_pods_stay_as_long_as_they_did() -> None:
    """While they are there they tell since when their node has been idle (10 minutes here)."""
    (kept, gone) = (
        played(replace(pod, kept_seconds=seconds) for pod in PODS[:1]) for seconds in (700, 300)
    )
    assert node_seconds(gone) - node_seconds(kept) == pytest.approx(300, abs=61)


def test_pods_that_existed_when_the_recording_began_are_not_in_the_waiting_times() -> None:
    """A cluster of services showed a minute, that of the simulation's first nodes."""
    begin = recorded_from(AT)
    spec = make_spec("100m", "1Gi")
    old = [
        PodDemand(at=AT - timedelta(days=1), id=f"old-{n}", spec=make_spec("1")) for n in range(18)
    ]
    new = [PodDemand(at=AT + timedelta(minutes=20 + n), id=f"new-{n}", spec=spec) for n in range(5)]
    huge = PodDemand(at=AT - timedelta(days=1), id="huge", spec=make_spec("900"))
    gone = replace(huge, id="gone", until=AT + timedelta(minutes=5))
    found = report([("a", played([begin, *old, *new, huge, gone]))])["runs"][0]
    waiting = found["waiting"]
    assert waiting["pods"] == waiting["at_once"] == 5
    assert (waiting["p50_seconds"], waiting["max_seconds"]) == (0, 0)
    assert waiting["existed_at_the_begin"] == 19
    assert waiting["without_a_node_at_the_end"] == waiting["deleted_without_a_node"] == 1
    assert found["pods"] == 5 + 19 + 1
    assert {workload["longest_seconds"] for workload in waiting["workloads"]} >= {300}
    plain = played([*(replace(pod_demand, at=AT) for pod_demand in old), *new])
    assert (len(plain.history.waits), plain.history.existed) == (23, 0)
