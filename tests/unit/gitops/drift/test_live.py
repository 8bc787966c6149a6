"""Drift as every cycle sees it."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.config.loader import parse_config
from reconciler.gitops.drift.live import (
    LiveDrift,
    LiveDriftKind,
    fleet_tags,
    group_tags,
    is_live,
    live_drift,
)
from reconciler.gitops.rendering.root_module import root_module_of, root_modules_of
from reconciler.model.fleet import Fleet, Instance
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import FleetId, InstanceId, Region
from reconciler.model.snapshot import CloudState

HOME, AWAY = Region("us-west-2"), Region("us-east-1")
CONFIG = parse_config(
    """\
cluster: analytics
regions: [us-west-2, us-east-1]
terraform: {ami: ami-2, tags: {team: data}}
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
VARIABLES = {
    name: variables
    for root in root_modules_of(CONFIG).values()
    for name, variables in root.fleets.items()
}


def fleet(name: str, region: Region = HOME, **changes: Any) -> Fleet:
    """A fleet exactly as the module makes it."""
    variables = VARIABLES.get(name, {})
    types = {
        "primary-small": ("r5.xlarge", "r4.xlarge", "m5.2xlarge", "m4.2xlarge"),
        "primary-large": ("r5.4xlarge", "r4.4xlarge", "m5.8xlarge", "m4.10xlarge"),
    }
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


SMALL, WIDE, LARGE = fleet("primary-small"), fleet("primary-wide"), fleet("primary-large", AWAY)


def drift(*fleets: Fleet, regions: frozenset[Region] = frozenset({HOME, AWAY})) -> list[LiveDrift]:
    """What differs when EC2 has these, and the fleet of the other Region."""
    return list(live_drift(CONFIG, HOME, CloudState(fleets=(*fleets, LARGE), regions=regions)))


def test_fleets_as_the_module_makes_them_are_no_drift() -> None:
    """A metric that is never zero is never looked at."""
    assert drift(SMALL, WIDE) == []


def test_tag_in_another_form_of_unicode_is_no_drift() -> None:
    """Terraform composes all strings; a config written on a Mac may have decomposed ones."""
    text = "cluster: analytics\nregions: [us-west-2]\nterraform: {tags: {team: E\u0301quipe}}\n"
    config = parse_config(text + "sectors: {primary: {kind: memory, fleets: [{size: small}]}}\n")
    variables = root_module_of(config).fleets["primary-small"]
    tags = fleet_tags("analytics", "primary-small", variables)
    made = replace(SMALL, tags=FrozenMap({**tags, "team": "\u00c9quipe"}))
    assert (
        list(live_drift(config, HOME, CloudState(fleets=(made,), regions=frozenset({HOME})))) == []
    )


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
    ("fleets", "regions", "answer"),
    [
        ((SMALL, WIDE, LARGE), {HOME, AWAY}, True),
        ((SMALL, LARGE), {HOME, AWAY}, False),
        ((SMALL, WIDE), {HOME, AWAY}, False),
        ((SMALL, WIDE), {HOME}, None),
    ],
)
def test_config_is_live_only_where_ec2_answered(
    fleets: tuple[Fleet, ...], regions: set[Region], answer: bool | None
) -> None:
    """A change would be called live, in the chain that people wait for, because nobody looked."""
    cloud = CloudState(fleets=fleets, regions=frozenset(regions))
    assert is_live(CONFIG, HOME, cloud) is answer


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


def instance(image: str, version: str = "7", **changes: Any) -> Instance:
    """A node's instance of the fleet that is looked at."""
    made = Instance(
        id=InstanceId("i-1"),
        region=HOME,
        fleet_id=SMALL.id,
        state="running",
        instance_type="r5.xlarge",
        zone="us-west-2a",
        launched_at=None,
        launch_template_version=version,
        image_id=image,
    )
    return replace(made, **changes)


def images(*instances: Instance, version: str = "7") -> list[LiveDrift]:
    """What differs when the fleet launches from this version and has these instances."""
    fleets = (replace(SMALL, launch_template_version=version), WIDE, LARGE)
    regions = frozenset({HOME, AWAY})
    cloud = CloudState(fleets=fleets, instances=instances, regions=regions)
    return list(live_drift(CONFIG, HOME, cloud))


def test_new_nodes_of_another_image_are_drift() -> None:
    """A template that somebody edited by hand rolls an image out that nobody reviewed."""
    (found,) = images(instance("ami-1"), instance("ami-2"))
    assert (found.fleet, found.kind) == ("primary-small", "image-differs")
    assert found.detail == "new nodes get ami-1, not ami-2"


@pytest.mark.parametrize(
    "instances",
    [
        (),
        (instance("ami-2"),),
        (instance("ami-1", version="6"),),
        (instance(""),),
        (instance("ami-1", state="shutting-down"),),
        (instance("ami-1", fleet_id=FleetId("fleet-other")),),
    ],
)
def test_image_of_older_nodes_is_no_drift(instances: tuple[Instance, ...]) -> None:
    """Nodes from before the last apply are for the rolling update, not for an alarm."""
    assert images(*instances) == []


def test_image_is_not_judged_while_the_present_version_is_unknown() -> None:
    """Without the launch template's number no instance is known to be of it."""
    assert images(instance("ami-1"), version="$Latest") == []


def test_fleet_that_was_deleted_by_hand_is_missing() -> None:
    """EC2 lists it as long as its instances run: nothing replaces them any more."""
    found = drift(replace(SMALL, state="deleted-running"), WIDE)
    assert [(each.fleet, each.kind) for each in found] == [("primary-small", "fleet-missing")]


def test_fleet_in_a_region_that_it_left_is_extra() -> None:
    """Its name is still in the config, of another Region: nobody would see that it goes on."""
    (found,) = drift(SMALL, WIDE, replace(LARGE, id=FleetId("fleet-home"), region=HOME))
    assert (found.fleet, found.region, found.kind) == ("primary-large", HOME, "fleet-extra")


def test_second_fleet_of_a_name_is_extra() -> None:
    """Two fleets of one name stand for twice the nodes, and the loop sizes only one of them."""
    twin = replace(SMALL, id=FleetId("fleet-twin"))
    (found,) = drift(SMALL, twin, WIDE)
    assert (found.fleet, found.kind) == ("primary-small", "fleet-extra")
    assert found.detail == "2 fleets have this name: fleet-primary-small, fleet-twin"


def test_group_of_the_config_is_compared_by_its_name_and_tags() -> None:
    """A group whose tags say nothing of its nodes is not scaled from zero."""
    config = parse_config(
        "cluster: analytics\nregions: [us-west-2]\nsectors:\n"
        "  web: {kind: cpu, fleets: [{size: small, spot: false, provider: asg,"
        " auto_scaling_group: web, terraform: {on_demand_prefer_no_schedule_taint: true}}]}\n"
    )
    (variables,) = root_modules_of(config)[None].fleets.values()
    tags = group_tags("analytics", "web-small", variables)
    prefix = "k8s.io/cluster-autoscaler/node-template"
    assert tags[f"{prefix}/label/lifecycle"] == "OnDemand"
    assert tags[f"{prefix}/taint/lifecycle"] == "OnDemand:PreferNoSchedule"
    group = fleet("web", provider="asg", id=FleetId("web"), tags=FrozenMap(tags))

    def kinds(*there: Fleet) -> list[tuple[str, str]]:
        cloud = CloudState(fleets=there, regions=frozenset({HOME}))
        return [(drift.fleet, drift.kind) for drift in live_drift(config, HOME, cloud)]

    assert kinds(group) == []
    assert kinds() == [("web-small", "fleet-missing")]
    stripped = {key: value for key, value in tags.items() if not key.startswith(prefix)}
    assert kinds(replace(group, tags=FrozenMap(stripped))) == [("web-small", "tags-differ")]
    others = replace(group, id=FleetId("others"), tags=FrozenMap({"KubernetesCluster": "x"}))
    assert kinds(group, others) == []
