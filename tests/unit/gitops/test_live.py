"""Drift as every cycle sees it."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.config.loader import parse_config
from reconciler.gitops.live import LiveDrift, LiveDriftKind, fleet_tags, live_drift
from reconciler.gitops.root_module import root_module_of
from reconciler.model.fleet import Fleet
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import FleetId, Region
from reconciler.model.snapshot import CloudState

HOME, AWAY = Region("us-west-2"), Region("us-east-1")
CONFIG = parse_config(
    """\
cluster: analytics
regions: [us-west-2, us-east-1]
terraform: {tags: {team: data}}
sizes:
  wide: {kind: memory, cpu: 2, memory: 16Gi, instance_types: [r6i.large, r5.large]}
sectors:
  primary:
    kind: memory
    fleets:
    - {size: small}
    - {size: wide, spot: false}
    - {size: large, regions: [us-east-1]}
"""
)
ROOT = root_module_of(CONFIG)


def fleet(name: str, region: Region = HOME, **changes: Any) -> Fleet:
    """A fleet exactly as the module makes it."""
    variables = ROOT.fleets.get(name, {})
    types = {"primary-small": ("r5.xlarge", "r4.xlarge", "m5.2xlarge", "m4.2xlarge")}
    made = Fleet(
        id=FleetId(f"fleet-{name}"),
        name=name,
        provider="ec2-fleet",
        region=region,
        state="active",
        target_capacity=3,
        tags=FrozenMap(fleet_tags("analytics", name, variables) if variables else {}),
        instance_types=types.get(name, tuple(variables.get("instance_types", ()))),
    )
    return replace(made, **changes)


SMALL, WIDE = fleet("primary-small"), fleet("primary-wide")


def drift(*fleets: Fleet, regions: frozenset[Region] = frozenset({HOME, AWAY})) -> list[LiveDrift]:
    """What differs when EC2 has these."""
    return list(live_drift(CONFIG, HOME, CloudState(fleets=fleets, regions=regions)))


def test_fleets_as_the_module_makes_them_are_no_drift() -> None:
    """A metric that is never zero is never looked at."""
    assert drift(SMALL, WIDE, fleet("primary-large", AWAY)) == []


def test_target_is_no_drift() -> None:
    """Capacity belongs to the loop."""
    assert drift(replace(SMALL, target_capacity=99), WIDE) == []


def test_missing_and_extra_fleets_are_named() -> None:
    """Somebody deleted one by hand, or a config lost one."""
    found = drift(SMALL, fleet("old-medium"))
    assert [(each.fleet, each.kind) for each in found] == [
        ("old-medium", "fleet-extra"),
        ("primary-wide", "fleet-missing"),
    ]


def test_silent_region_is_not_missing() -> None:
    """An outage of an API must not look like a deleted fleet."""
    assert drift(regions=frozenset({AWAY})) == []


@pytest.mark.parametrize(
    ("changes", "kind", "detail"),
    [
        ({"tags": FrozenMap({**SMALL.tags, "team": "web"})}, "tags-differ", "team"),
        ({"tags": FrozenMap({**SMALL.tags, "more": ""})}, "tags-differ", "more"),
        (
            {"tags": FrozenMap({k: v for k, v in SMALL.tags.items() if k != "Spot"})},
            "tags-differ",
            "Spot",
        ),
        ({"instance_types": ("r5.xlarge",)}, "types-differ", "m4.2xlarge, m5.2xlarge, r4.xlarge"),
    ],
)
def test_changed_fleet_names_what_and_never_a_value(
    changes: dict[str, Any], kind: LiveDriftKind, detail: str
) -> None:
    """Values of tags may be nobody else's business."""
    assert drift(replace(SMALL, **changes), WIDE) == [
        LiveDrift(fleet="primary-small", region=HOME, kind=kind, detail=detail)
    ]


def test_tags_of_amazon_are_none_of_ours() -> None:
    """CloudFormation and the like add their own."""
    tags = FrozenMap({**SMALL.tags, "aws:cloudformation:stack-name": "x"})
    assert drift(replace(SMALL, tags=tags), WIDE) == []


def test_config_without_sectors_says_nothing() -> None:
    """Groups that are only discovered have no config to differ from."""
    config = parse_config("cluster: analytics\n")
    cloud = CloudState(fleets=(SMALL,), regions=frozenset({HOME}))
    assert live_drift(config, HOME, cloud) == ()
