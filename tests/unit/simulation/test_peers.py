"""Models of other autoscalers: what each does on a demand that is small enough to know."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from reconciler.model.cluster import Owner
from reconciler.model.demand import (
    ControllerDemand,
    DemandLine,
    FaultDemand,
    NodeFact,
    PodDemand,
)
from reconciler.model.errors import UsageError
from reconciler.planner.settings import PlannerSettings
from reconciler.records.demand import folded
from reconciler.simulation.chances import Chances
from reconciler.simulation.offers import offers_of
from reconciler.simulation.peers.groups import by_type_and_zone, by_zone
from reconciler.simulation.peers.models import peer_of, peers_of, played
from reconciler.simulation.report import report, report_files
from reconciler.simulation.simulation import Options, Result, Simulation
from tests.builders import amounts, make_fleet_settings, make_option, make_settings, make_spec

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
BEGIN = 1.0
"""Virtual seconds of the first line."""
SURE = Chances(interruptions_per_hour=0, capacity_errors_per_day=0, launch_sigma=0, join_sigma=0)
BOOT = SURE.launch_median_seconds + SURE.join_median_seconds


def settings(**changed: Any) -> PlannerSettings:
    """A small fleet of 4 CPUs and a large one of 16, which costs more for each CPU."""
    small: dict[str, Any] = {"price": "0.10", "spot": False, "zone": "us-west-2a", **changed}
    return make_settings(
        make_fleet_settings(**small),
        make_fleet_settings("large", cpu=16, memory="64Gi", price="0.60", spot=False,
                            zone="us-west-2a"),
        search_budget_seconds=0.0,
    )  # fmt: skip


def jobs(count: int = 1, at: float = 0.0, ran: float = 120.0, cpu: str = "1") -> list[PodDemand]:
    """Pods of Jobs at one moment."""
    return [
        PodDemand(at=AT + timedelta(seconds=at), id=f"job-{at}-{n}", spec=make_spec(cpu, "1Gi"),
                  ran_seconds=ran, controller=Owner(kind="Job", name=f"job-{at}-{n}"))
        for n in range(count)
    ]  # fmt: skip


def web(replicas: int, at: float = 0.0) -> ControllerDemand:
    """A Deployment of pods of one CPU."""
    return ControllerDemand(
        at=AT + timedelta(seconds=at),
        controller=Owner(kind="Deployment", name="web"),
        replicas=replicas,
        spec=make_spec("1", "1Gi"),
    )


def modelled(
    peer: str, lines: Iterable[DemandLine], seconds: float = 900, **changed: Any
) -> Result:
    """What the model did."""
    options = Options(days=seconds / 86_400, chances=SURE)
    return played(peer_of(peer), folded(lines), settings(**changed), options)


def test_cluster_autoscaler_waits_a_scan_for_more_pods() -> None:
    """Pods without room are new when they are first seen: the next scan buys for them."""
    found = modelled("cluster-autoscaler", jobs(), seconds=120)
    assert [launch.begin for launch in found.launches] == [BEGIN + 10]
    found = modelled("cluster-autoscaler,scan-interval=20s", jobs(), seconds=120)
    assert [launch.begin for launch in found.launches] == [BEGIN + 20]


def test_cluster_autoscaler_ends_an_empty_node_after_the_unneeded_time_and_not_before() -> None:
    """Not before the last scale-up is long enough ago either.

    While it runs, the pod asks for too much of its node to be moved.
    """
    at_once = "scale-down-delay-after-add=0"
    peer = f"cluster-autoscaler,scale-down-unneeded-time=5m,{at_once}"
    (launch,) = modelled(peer, jobs(cpu="3")).launches
    emptied = BEGIN + 10 + BOOT + 120
    assert emptied + 300 <= launch.end <= emptied + 300 + 25
    delayed = "cluster-autoscaler,scale-down-unneeded-time=1m,scale-down-delay-after-add=10m"
    (launch,) = modelled(delayed, jobs(cpu="3")).launches
    assert launch.begin + 600 <= launch.end <= launch.begin + 625


@pytest.mark.parametrize(("threshold", "moved"), [("0.25", 1), ("0.2", 0)])
def test_cluster_autoscaler_moves_pods_off_nodes_up_to_its_threshold(
    threshold: str, moved: int
) -> None:
    """Two nodes with one of four CPUs in use each when Jobs have ended: one goes, or none."""
    peer = (
        "cluster-autoscaler,scale-down-unneeded-time=1m,scale-down-delay-after-add=1m,"
        f"scale-down-utilization-threshold={threshold}"
    )
    found = modelled(peer, [web(2), *jobs(2, cpu="3")])
    assert found.history.evictions.total() == moved
    assert sum(launch.end < found.seconds for launch in found.launches) == moved


def test_cluster_autoscaler_keeps_the_minimum() -> None:
    """Whatever is empty."""
    peer = "cluster-autoscaler,scale-down-unneeded-time=1m,scale-down-delay-after-add=0"
    found = modelled(peer, jobs(8), min_capacity=2)
    assert sum(launch.end >= found.seconds for launch in found.launches) == 2


def test_karpenter_buys_for_a_batch_when_no_pod_has_come_for_a_second() -> None:
    """And after ten at most."""
    lines = [*jobs(at=0), *jobs(at=0.6), *jobs(at=1.2)]
    assert [launch.begin for launch in modelled("karpenter", lines, 120).launches] == [BEGIN + 2.2]
    steady = [line for n in range(30) for line in jobs(at=0.5 * n)]
    assert modelled("karpenter", steady, 120).launches[0].begin == BEGIN + 10


def test_karpenter_buys_the_cheapest_type_that_holds_the_batch() -> None:
    """One node for ten pods, although three small ones would cost half."""
    (small,) = modelled("karpenter", jobs(), 120).launches
    assert small.instance_type == "small.type"
    (large,) = modelled("karpenter", jobs(10), 120).launches
    assert large.instance_type == "large.type"


def test_karpenter_ends_an_empty_node_once_it_was_quiet_for_consolidate_after() -> None:
    """A look every ten seconds, and fifteen until the decision is carried out."""
    (launch,) = modelled("karpenter,consolidate-after=5m", jobs()).launches
    emptied = BEGIN + 1 + BOOT + 120
    assert emptied + 300 <= launch.end <= emptied + 300 + 10 + 15 + 10


def test_karpenter_replaces_a_node_by_a_cheaper_one_that_is_ready_first() -> None:
    """The pod that is left of ten moves to a node of its size."""
    found = modelled("karpenter,consolidate-after=30s", [web(10), web(1, at=120)], 600)
    large, small = found.launches
    assert (large.instance_type, small.instance_type) == ("large.type", "small.type")
    assert large.end >= small.begin + BOOT
    assert found.history.evictions.total() == 1
    assert found.history.waiting == 0


@pytest.mark.parametrize(("budget", "at_once"), [("10%", 1), ("100%", 3)])
def test_karpenter_disrupts_no_more_nodes_than_its_budget_at_a_time(
    budget: str, at_once: int
) -> None:
    """Three nodes are empty at the same moment, and all go in time."""
    found = modelled(f"karpenter,budget={budget}", jobs(12, ran=60, cpu="3"), max_capacity=0)
    ends = [launch.end for launch in found.launches]
    assert len(ends) == 3
    assert max(ends) < found.seconds
    assert ends.count(min(ends)) == at_once


def fault(at: float = 0.0, until: float | None = None, **more: Any) -> FaultDemand:
    """Something of EC2 goes wrong."""
    end = None if until is None else AT + timedelta(seconds=until)
    return FaultDemand(at=AT + timedelta(seconds=at), until=end, **more)


def test_cluster_autoscaler_takes_another_group_while_one_has_no_capacity() -> None:
    """It asks the empty one again after five minutes, and pays for no node twice."""
    lines: list[DemandLine] = [
        fault(until=60, fault="capacity", instance_type="small.type"),
        *jobs(),
        *jobs(at=450),
    ]
    found = modelled("cluster-autoscaler", lines)
    assert [launch.instance_type for launch in found.launches] == ["large.type"]
    assert found.history.waiting == 0


def test_karpenter_takes_another_type_while_one_has_no_capacity() -> None:
    """The batch is bought for again at once."""
    lines: list[DemandLine] = [
        fault(until=60, fault="capacity", instance_type="small.type"),
        *jobs(),
    ]
    (launch,) = modelled("karpenter", lines, 120).launches
    assert launch.instance_type == "large.type"
    assert launch.begin < BEGIN + 5


def test_karpenter_replaces_an_interrupted_node_before_it_is_gone() -> None:
    """Its pods count as demand from the notice on; EC2 replaces nothing by itself."""
    lines: list[DemandLine] = [web(3), fault(200, fault="interruption")]
    found = modelled("karpenter,consolidate-after=1h", lines, 600, spot=True)
    first, second = found.launches
    assert 200 < second.begin < 200 + 20
    assert first.end < 200 + 121
    assert found.history.evictions == {"interruption": 3}
    assert found.history.waiting == 0


def test_cluster_autoscaler_leaves_an_interrupted_node_to_its_group() -> None:
    """Nobody tells it: the pods end with their node, and the group launches another."""
    lines: list[DemandLine] = [web(3), fault(200, fault="interruption")]
    found = modelled("cluster-autoscaler", lines, 600, spot=True)
    first, second = found.launches
    assert first.end == second.begin
    assert not found.history.evictions
    assert found.history.waiting == 0


@pytest.mark.parametrize("peer", ["cluster-autoscaler", "karpenter"])
@pytest.mark.parametrize("init_seconds", [60, 900])
def test_instance_that_becomes_no_node_is_ended_before_another_is_bought(
    peer: str, init_seconds: int
) -> None:
    """A model bought a node each second for one pod as soon as `instance_init_time` was over."""
    pod = PodDemand(at=AT + timedelta(seconds=1), id="pod", spec=make_spec("1", "1Gi"))
    lines: list[DemandLine] = [fault(until=600, fault="never-join"), pod]
    config = replace(settings(), instance_init_seconds=init_seconds)
    options = Options(days=1800 / 86_400, chances=SURE)
    found = played(peer_of(peer), folded(lines), config, options)
    first, second = found.launches
    assert first.end - first.begin == 900
    assert second.begin >= first.end
    assert found.history.waiting == 0


def with_models() -> tuple[dict[str, Any], Mapping[str, bytes]]:
    """The report of a demand with both models, and its files."""
    lines: list[DemandLine] = [*jobs(6), web(3)]
    options = Options(days=300 / 86_400, chances=SURE)
    own = [("a", Simulation(folded(lines), settings(), options).run())]
    peers = [
        (peer_of(name).shown(), modelled(name, lines, 300))
        for name in ("cluster-autoscaler", "karpenter")
    ]
    found = report(own, peers)
    return found, report_files(found, own)


@pytest.mark.parametrize("peer", ["cluster-autoscaler", "karpenter"])
def test_pods_that_name_no_sector_are_bought_for_from_the_default_one(peer: str) -> None:
    """The config itself may not use the cheaper sector: the comparison would be of two demands."""
    both = make_settings(
        make_fleet_settings(price="0.60", spot=False, zone="us-west-2a"),
        make_fleet_settings(sector="cheap", price="0.10", spot=False, zone="us-west-2a"),
        search_budget_seconds=0.0,
    )
    options = Options(days=900 / 86_400, chances=SURE)
    cheap = [
        replace(job, id=f"cheap-{job.id}", spec=make_spec("1", "1Gi", sector="cheap"))
        for job in jobs(1)
    ]
    bought = [
        {launch.fleet for launch in played(peer_of(peer), folded(lines), both, options).launches}
        for lines in (jobs(3), cheap)
    ]
    assert bought == [{"primary-small-us-west-2a"}, {"cheap-small-us-west-2a"}]


def test_report_with_models_has_the_same_bytes_twice() -> None:
    """And says of each that it is a model, with what it leaves out."""
    found, files = with_models()
    assert with_models()[1] == files
    assert all("(model)" in peer["config"] for peer in found["peers"])
    assert all(peer["model"]["left_out"] for peer in found["peers"])
    assert {len(row["values"]) for row in found["beside_peers"]} == {3}
    assert found["peers"][0].keys() - {"model"} == found["runs"][0].keys()


@pytest.mark.parametrize(
    "text",
    [
        "kube", "karpenter,scan-interval=10s", "karpenter,budget=x", "karpenter,budget=-1",
        "cluster-autoscaler,scan-interval=0s", "cluster-autoscaler,scan-interval=0.5s",
        "cluster-autoscaler,scale-down-utilization-threshold=50%",
        "cluster-autoscaler,scale-down-utilization-threshold=2",
        "karpenter,budget=5", "karpenter,budget=0.5%", "karpenter,budget=200%",
    ],
)  # fmt: skip
def test_mistyped_model_is_refused(text: str) -> None:
    """A setting that is passed over would compare something else."""
    with pytest.raises(UsageError):
        peer_of(text)


def test_models_of_one_program_are_told_apart() -> None:
    """Two columns of a report had the same title, and did not say which setting each had."""
    texts = ["karpenter", "karpenter,consolidate-after=30s,budget=20%", "cluster-autoscaler"]
    assert [peer.title for peer in peers_of(texts)] == [
        "Karpenter 1.14 (model), its defaults",
        "Karpenter 1.14 (model), consolidate-after=30s,budget=20%",
        "Cluster Autoscaler 1.36 (model)",
    ]
    with pytest.raises(UsageError, match="comes twice"):
        peers_of(["karpenter", "karpenter,consolidate-after=0s"])


@pytest.mark.parametrize("peer", ["cluster-autoscaler", "karpenter"])
def test_fault_of_a_fleet_reaches_all_its_groups_in_the_models(peer: str) -> None:
    """A model that is spared what the config suffers looks better than it is."""
    fault = FaultDemand(at=AT, fault="capacity", fleet="primary-small",
                        until=AT + timedelta(seconds=600))  # fmt: skip
    large = FaultDemand(at=AT, fault="capacity", fleet="primary-large-us-west-2a")
    lines: list[DemandLine] = [fault, large, *jobs(at=1.0)]
    found = modelled(peer, lines, seconds=1_800, zone=None)
    assert found.launches
    assert min(launch.begin for launch in found.launches) >= 600


@pytest.mark.parametrize("peer", ["cluster-autoscaler", "karpenter"])
def test_fleet_of_another_region_is_left_out_of_the_models(peer: str) -> None:
    """It was moved to the first region, where the config itself has no such nodes."""
    away: dict[str, Any] = {"regions": ("eu-west-1",), "min_capacity": 1}
    config = make_settings(
        make_fleet_settings(spot=False),
        make_fleet_settings("large", price="0.01", spot=False, **away),
        make_fleet_settings(sector="far", spot=False, **away),
        regions=("us-west-2", "eu-west-1"), search_budget_seconds=0.0,
    )  # fmt: skip
    far = replace(jobs(at=0.5)[0], spec=make_spec("1", "1Gi", sector="far"))
    options = Options(days=900 / 86_400, chances=SURE)
    found = played(peer_of(peer), folded([*jobs(), far]), config, options)
    assert {launch.fleet for launch in found.launches} == {"primary-small"}
    assert found.history.waiting == 1


@pytest.mark.parametrize("peer", ["cluster-autoscaler", "karpenter"])
def test_what_nodes_of_a_fleet_offered_holds_for_all_its_groups(peer: str) -> None:
    """Another fleet's nodes of the same type may offer less."""
    config = make_settings(
        *(make_fleet_settings(size, zone=None, spot=False,
                            options=[make_option("m5.xlarge", 4, "16Gi", 58, price="0.192")])
          for size in ("small", "medium"))
    )  # fmt: skip
    facts = [
        NodeFact(at=AT, fleet=f"primary-{size}", instance_type="m5.xlarge",
                 allocatable=amounts(cpu=cpu, memory="14Gi", pods=58))
        for size, cpu in (("small", "3900m"), ("medium", "2000m"))
    ]  # fmt: skip
    groups = (by_zone if peer == "cluster-autoscaler" else by_type_and_zone)(config)
    offers = offers_of(groups.settings, facts, groups.fleet_of)
    assert len(offers) == 6
    assert {(groups.fleet_of[o.fleet.name], o.allocatable["cpu"]) for o in offers} == {
        ("primary-small", 3900),
        ("primary-medium", 2000),
    }
