"""The instance catalogue: what it covers, and that its figures are EC2's."""

import csv
import os
from dataclasses import replace
from decimal import Decimal
from importlib.resources import files
from pathlib import Path

import pytest

from reconciler.config.catalogue import load_catalogue, refreshed, render_catalogue
from reconciler.config.sizes import BUILT_IN_SIZES
from reconciler.model.errors import InputError
from reconciler.model.snapshot import Ignored
from reconciler.records.aws.catalogue import decode_instance_types

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


def test_catalogue_in_the_package_is_in_the_form_that_is_written() -> None:
    """A refresh of the package's own file shows what changed and nothing else."""
    text = (files("reconciler.config") / "catalogue.json").read_text(encoding="utf-8")
    assert render_catalogue(load_catalogue()) == text


def test_refresh_keeps_what_ec2_does_not_say() -> None:
    """A fleet of an older type must not lose its figures because EC2 lists it no more."""
    before = load_catalogue()
    now = {"m5.large": replace(before["m5.large"], spot_usd_per_hour=Decimal("0.01"))}
    made = refreshed(before, now, "us-east-1", "2027-01-01")
    assert made["m5.large"].spot_usd_per_hour == Decimal("0.01")
    assert made["m4.large"] == before["m4.large"]
    assert "2026-07-20" in made.sources[-1]


def test_price_of_another_region_never_completes_a_price() -> None:
    """Regions differ by half: no price is better than one from elsewhere."""
    before = load_catalogue()
    now = {"m5.large": replace(before["m5.large"], on_demand_usd_per_hour=None)}
    here = refreshed(before, now, "us-east-1", "2027-01-01")["m5.large"]
    away = refreshed(before, now, "sa-east-1", "2027-01-01")["m5.large"]
    assert here.on_demand_usd_per_hour == before["m5.large"].on_demand_usd_per_hour
    assert away.on_demand_usd_per_hour is None


def test_types_are_read_one_by_one() -> None:
    """One type with a new shape must not cost the other seven hundred."""
    sound = {
        "InstanceType": "x1.test",
        "VCpuInfo": {"DefaultVCpus": 4},
        "MemoryInfo": {"SizeInMiB": 8192},
        "ProcessorInfo": {"SupportedArchitectures": ["arm64"]},
        "NetworkInfo": {"MaximumNetworkInterfaces": 4, "Ipv4AddressesPerInterface": 15},
    }
    apple = {**sound, "InstanceType": "mac2.metal"}
    apple["ProcessorInfo"] = {"SupportedArchitectures": ["arm64_mac"]}
    ignored: list[Ignored] = []
    broken = {"InstanceType": "new.kind", "VCpuInfo": None}
    answers = [{"InstanceTypes": [sound, broken, apple]}]
    found = decode_instance_types(answers, ignored)
    assert {n: (t.arch, t.pods_max) for n, t in found.items()} == {"x1.test": ("arm64", 58)}
    assert [i.name for i in ignored] == ["new.kind"]


def test_catalogue_that_is_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    """`validate` waited for ever for what nobody writes."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="is not a regular file"):
        load_catalogue(str(tmp_path / "pipe"))
