"""The benchmarks measure what they say: their pods, their reference, their tables."""

from collections import Counter
from dataclasses import replace

import pytest

from reconciler.model.actions import EvictPod
from reconciler.planner.planner import plan
from tests.benchmarks import clusters, pods, reference, rescheduling
from tests.benchmarks.cases import CASES, Size
from tests.benchmarks.measure import Measurement
from tests.benchmarks.report import growth, percentile, section


def test_karpenter_mix_is_five_equal_parts() -> None:
    """A mix with fewer hard pods would flatter every figure."""
    made = pods.karpenter_mix(500)
    apps = Counter(p.labels["app"].removesuffix(f"-{p.labels['app'][-1]}") for p in made)
    assert apps["zonal-affinity"] == 100
    assert sum(bool(p.spec.pod_anti_affinity) for p in made) == 100
    assert sum(bool(p.spec.topology_spread) for p in made) == 200
    assert len({p.labels["app"] for p in made if p.spec.pod_affinity}) == 7


def test_karpenter_fleets_are_the_sizes_of_its_benchmark() -> None:
    """One size too few changes the price of everything."""
    fleets = clusters.karpenter_fleets().fleets()
    assert len(fleets) == 1200
    largest = fleets[-1].allocatable
    assert largest is not None
    assert dict(largest) == {"cpu": 399_900, "memory": 800 * 2**30 - 10 * 2**20, "pods": 4000}


@pytest.mark.parametrize("name", [n for n, case in CASES.items() if case.data is None])
def test_small_form_of_a_case_is_placed_whole(name: str) -> None:
    """A case whose pods cannot be placed measures how fast nothing is done."""
    nodes = 20 if name == "cycle" else 0
    snapshot, settings = CASES[name].make(Size(pods=120, nodes=nodes, per_node=2))
    made = plan(snapshot, settings)
    assert len(made.placements) == 120
    assert reference.pods_per_second(snapshot, settings) > 0


def test_rescheduling_benchmark_empties_a_node_and_evicts_what_is_old() -> None:
    """Settings that find nothing to do would measure nothing."""
    snapshot, settings = rescheduling.make(old=5, nodes=20)
    for changed, evicted in (
        ({}, 0),
        ({"spot_rescheduler": rescheduling.SPOT}, 30),
        ({"descheduler": rescheduling.DESCHEDULER}, 5),
    ):
        made = plan(snapshot, replace(settings, **changed))
        assert sum(isinstance(action, EvictPod) for action in made.actions) == evicted


def test_equal_specs_are_one_object() -> None:
    """The decoder interns specs; pods that did not share them would measure something else."""
    made = pods.mix_of_six(600, clusters.ZONES)
    assert len({id(p.spec) for p in made}) == len({p.spec for p in made}) == 6


def test_percentiles_and_growth_are_the_usual_ones() -> None:
    """A slip here and every table is wrong."""
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert percentile([float(i) for i in range(1, 101)], 0.99) == 99.0
    small, large = measured(0, 0.1), measured(2, 1.0)
    assert growth([small, large]) == pytest.approx(1.0)
    assert growth([small, small]) is None


def measured(size: int, seconds: float) -> Measurement:
    """A measurement of karpenter-mix."""
    return Measurement(
        case="karpenter-mix",
        size=size,
        pods=CASES["karpenter-mix"].sizes[size].pods,
        first=seconds,
        wall=(seconds,) * 3,
        cpu=(seconds,) * 3,
        record=(seconds / 2,) * 3,
        peak_mib=100,
        before_mib=50,
        nodes=10,
        cpus=100,
        usd=171.06,
        gap=0.01,
        unplaceable=0,
        reference=100,
    )


def test_table_compares_with_the_peer() -> None:
    """The comparison is computed from the run, not written by hand."""
    text = section("karpenter-mix", [measured(0, 0.1)])
    assert "| 1,000 pods | 100 ms | 100 ms | 100 ms | 100 ms | 50 ms |" in text
    assert "27 times as many here, at 50% of its 342.13 USD/h" in text
