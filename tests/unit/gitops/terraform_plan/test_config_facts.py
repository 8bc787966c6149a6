"""Which prices a plan's summary tells of."""

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from reconciler.config.catalogue import load_catalogue, render_catalogue
from reconciler.gitops.terraform_plan.config_facts import ConfigFacts, config_facts
from reconciler.model.fleet import PriceSource

CONFIG = """
cluster: a
regions: [eu-west-1]
catalogue: {path}
sectors: {{p: {{kind: memory, fleets: [{{size: small, spot: false}}]}}}}
"""


def facts(folder: Path, path: str) -> ConfigFacts:
    """Of a config in the folder that names this catalogue."""
    content = CONFIG.format(path=path).encode()
    return config_facts(content, name=str(folder / "sectors.yaml"))


@pytest.mark.parametrize("absolute", [True, False])
def test_prices_are_those_of_the_configs_own_catalogue(tmp_path: Path, absolute: bool) -> None:
    """A plan for Ireland would tell of what Virginia costs."""
    own = load_catalogue()
    dear = {
        name: replace(instance_type, on_demand_usd_per_hour=Decimal(7))
        for name, instance_type in own.types.items()
    }
    file = tmp_path / "prices.json"
    made = replace(own, types=dear, region="eu-west-1", as_of="2026-11-01")
    file.write_text(render_catalogue(made))
    found = facts(tmp_path, str(file) if absolute else "prices.json")
    assert found.prices == PriceSource(region="eu-west-1", as_of="2026-11-01")
    assert found.fleets["p-small"].usd_per_hour == 7


def test_catalogue_that_is_only_in_the_pod_stops_no_plan(tmp_path: Path) -> None:
    """The file is on a volume of the capacity loop; the pipeline has the package's prices."""
    found = facts(tmp_path, "/etc/fleet-reconciler/prices.json")
    assert found.prices is not None
    assert found.prices.region == "us-east-1"


def test_catalogue_that_cannot_be_looked_for_stops_no_plan(tmp_path: Path) -> None:
    """The system refuses to look, as in a folder of another user: it ended with an OSError."""
    assert facts(tmp_path, "x" * 300).prices == load_catalogue().prices
