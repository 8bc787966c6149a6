"""The instance catalogue: what it covers, and that its figures are EC2's."""

import csv
from decimal import Decimal
from pathlib import Path

import pytest

from reconciler.config.catalogue import load_catalogue
from reconciler.config.sizes import BUILT_IN_SIZES

SHARED = Path(__file__).parents[4] / "shared" / "data" / "ec2_instance_types.csv"


@pytest.mark.parametrize("size", BUILT_IN_SIZES.values(), ids=lambda s: f"{s.kind}-{s.name}")
def test_built_in_size_is_the_least_of_its_options(size: object) -> None:
    """The table promises what every option gives; one smaller type would break the promise."""
    row = next(s for s in BUILT_IN_SIZES.values() if s == size)
    types = [load_catalogue()[name] for name in row.instance_types]
    assert min(t.cpu_milli for t in types) == row.cpu_milli
    assert min(t.memory_bytes for t in types) == row.memory_bytes


def test_current_families_are_known() -> None:
    """A fleet of current types would have no price and a guessed number of pods."""
    families = {name.split(".")[0] for name in load_catalogue()}
    wanted = "m5 m6i m6a m6g m7i m7a m7g c5 c6i c6a c6g c7i c7a c7g r5 r6i r6a r6g r7i r7a r7g"
    assert families >= {*wanted.split(), "g5", "t3", "t4g", "m4", "c4", "r4"}


def test_every_type_has_sound_figures() -> None:
    """A zero price or a missing pod limit would win or lose every comparison."""
    for instance_type in load_catalogue().values():
        assert instance_type.cpu_milli >= 1000
        assert instance_type.memory_bytes >= 2**28
        assert instance_type.pods_max >= 4
        on_demand, spot = instance_type.on_demand_usd_per_hour, instance_type.spot_usd_per_hour
        assert on_demand is not None
        assert spot is not None
        assert Decimal(0) < spot < on_demand


def test_source_and_date_are_stated() -> None:
    """A price without a date cannot be judged."""
    catalogue = load_catalogue()
    assert catalogue.as_of == "2026-07-20"
    assert any("Apache-2.0" in source for source in catalogue.sources)


def test_figures_agree_with_the_data_set_when_it_is_there() -> None:
    """A slip in the conversion would misprice a whole family."""
    if not SHARED.is_file():
        pytest.skip("the data set of instance types is not on this machine")
    with SHARED.open(encoding="utf-8", newline="") as file:
        rows = {row["instance_type"]: row for row in csv.DictReader(file)}
    for name, known in load_catalogue().items():
        if (row := rows.get(name)) is not None:
            assert known.cpu_milli == int(row["vcpu"]) * 1000
            assert known.memory_bytes == int(row["memory_mib"]) * 2**20
            assert known.pods_max == int(row["max_pods_vpc_cni"])
            assert known.on_demand_usd_per_hour == Decimal(row["od_usd_h_us_east_1"])
