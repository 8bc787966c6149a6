"""Where `reconciler plan` takes prices from: a catalogue file, EC2's spot price history."""

import json
from typing import Any

import pytest

from reconciler.config.catalogue import load_catalogue, render_catalogue
from tests.cli.inputs import Desk, Json, fleet, fleets, listing, pod

CONFIG = """\
cluster: analytics
regions: [us-west-2]
default_sector: primary
sectors:
  primary:
    kind: memory
    fleets:
    - {size: small}
"""
OPTIONS = ("r5.xlarge", "r4.xlarge", "m5.2xlarge", "m4.2xlarge")


def history(*prices: tuple[str, str], zone: str = "us-west-2a", day: int = 30) -> list[Json]:
    """Entries of describe-spot-price-history."""
    return [
        {
            "AvailabilityZone": zone,
            "InstanceType": name,
            "ProductDescription": "Linux/UNIX",
            "SpotPrice": price,
            "Timestamp": f"2026-01-{day}T00:00:00+00:00",
        }
        for name, price in prices
    ]


def cost(desk: Desk, aws: Json | None = None, config: str = CONFIG, *args: str) -> float:
    """What one new node costs by the plan."""
    desk.write("sectors.yaml", config)
    given = ["--cluster", desk.write("cluster.json", listing(pod("p")))]
    if aws is not None:
        given += ["--aws", desk.write("aws.json", fleets(fleet("primary-small")) | aws)]
    made: Any = desk.plan(*given, *args).plan
    return float(made["cost"]["hourly_usd_after"])


def test_spot_price_history_prices_the_fleets(desk: Desk) -> None:
    """The catalogue's spot prices are estimates of another year; EC2's own are what is paid."""
    entries = history(*((name, f"0.{i + 2}") for i, name in enumerate(OPTIONS)))
    assert cost(desk, {"SpotPriceHistory": entries}) == 0.2


def test_latest_price_of_the_cheapest_zone_counts(desk: Desk) -> None:
    """History lists old prices too, and every zone its own."""
    entries = [
        *history(("r5.xlarge", "0.01"), day=1),
        *history(("r5.xlarge", "0.31"), day=30),
        *history(("r5.xlarge", "0.27"), zone="us-west-2b", day=30),
    ]
    assert cost(desk, {"SpotPriceHistory": entries}) == 0.27


def test_option_without_a_price_in_the_history_does_not_count(desk: Desk) -> None:
    """A type that is not traded there cannot be bought, however cheap its old estimate is."""
    assert cost(desk, {"SpotPriceHistory": history(("m5.2xlarge", "0.9"))}) == 0.9


def test_history_of_another_region_changes_nothing(desk: Desk) -> None:
    """Prices differ between regions by half and more."""
    away = {"SpotPriceHistory": history(("r5.xlarge", "0.001")), "Region": "eu-west-1"}
    desk.write("away.json", away)
    files = ["--aws", str(desk.folder / "away.json")]
    assert cost(desk, {}, CONFIG, *files) == cost(desk)


def test_on_demand_fleet_keeps_its_list_price(desk: Desk) -> None:
    """Spot prices say nothing about what on-demand costs."""
    config = CONFIG.replace("size: small", "size: small, spot: false")
    entries = {"SpotPriceHistory": history(*((name, "0.001") for name in OPTIONS))}
    assert cost(desk, entries, config) == cost(desk, None, config)


def test_price_that_the_config_states_beats_the_history(desk: Desk) -> None:
    """Who writes a price into the config has a contract that EC2 does not know of."""
    config = CONFIG.replace("size: small", "size: small, price_usd_per_hour: 0.05")
    entries = {"SpotPriceHistory": history(("r5.xlarge", "0.2"))}
    assert cost(desk, entries, config) == 0.05


def test_catalogue_file_beats_the_packages_own(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Flag and variable name it; without effect a refresh would be for nothing."""
    document = json.loads(render_catalogue(load_catalogue()))
    for name in OPTIONS:
        document["types"][name]["spot_usd_per_hour"] = "0.0123"
    file = desk.write("prices.json", document)
    assert cost(desk, None, CONFIG, "--catalogue", file) == 0.0123
    monkeypatch.setenv("RECONCILER_CATALOGUE", file)
    assert cost(desk) == 0.0123


@pytest.mark.parametrize("content", ["", "[]", '{"types": {}}', '{"types": 1, "region": "x"}'])
def test_file_that_is_no_catalogue_is_one_line(desk: Desk, content: str) -> None:
    """A half-written file must not end in a traceback or in prices of nothing."""
    file = desk.write("prices.json", content)
    cluster = desk.write("cluster.json", listing(pod("p")))
    answer = desk.plan("--cluster", cluster, "--catalogue", file)
    assert answer.code == 1
    assert answer.err.startswith(f"error: {file}: is not an instance catalogue")
    assert "Traceback" not in answer.err
