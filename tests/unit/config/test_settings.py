"""From the config to the planner's settings: inheritance, options, prices, labels."""

from datetime import time
from decimal import Decimal

import pytest

from reconciler.config.catalogue import load_catalogue
from reconciler.config.planning.settings import planner_settings
from reconciler.config.resolve import ResolvedFleet, resolve_fleets
from reconciler.model.cluster import Taint
from reconciler.model.errors import UsageError
from reconciler.model.frozen import FrozenMap
from reconciler.planner.disruption_settings import EVERY_DAY, GracePeriod
from reconciler.planner.settings import FleetSettings, RaiseLimits
from reconciler.planner.system_reserve import NodeReserve, SystemReserve
from tests.unit.config.documents import COMPLETE, config_of

GIB = 2**30


def fleets_of(text: str) -> tuple[FleetSettings, ...]:
    """The fleets of a config with a cluster's name, as the planner gets them."""
    return planner_settings(config_of("cluster: c\n" + text), load_catalogue()).fleets()


def resolved(text: str) -> ResolvedFleet:
    """The first fleet of a config, with what it inherits."""
    return resolve_fleets(config_of(text))[0]


def test_contract_example_becomes_settings() -> None:
    """Everything the planner looks at must have arrived."""
    settings = planner_settings(config_of(COMPLETE), load_catalogue())
    assert (settings.cluster, settings.home_region) == ("analytics", "us-west-2")
    stated = FrozenMap({"cpu": 1000, "memory": 2_684_354_560})
    assert settings.reserve == SystemReserve(amounts=stated)
    assert [f.name for f in settings.fleets()] == [
        "coordinate-small",
        "primary-small",
        "primary-medium",
        "primary-large",
    ]
    first, second, *_ = settings.fleets()
    assert (first.spot, first.min_capacity, first.over_subscription) == (False, 2, 0.2)
    assert (second.spot, second.max_capacity, second.over_subscription) == (True, 200, 0.3)
    assert first.zones == ("us-west-2a", "us-west-2b")
    assert first.ephemeral_storage_bytes == 50 * GIB


@pytest.mark.parametrize(
    ("text", "of_groups"),
    [
        ("", {}),
        ("reserved_cpus: 500m\n", {"cpu": 500}),
        ("reserved_memory: 0\n", {"memory": 0}),
        ("reserved_cpus: 2\nreserved_memory: 1Gi\n", {"cpu": 2000, "memory": GIB}),
    ],
)
def test_default_reserve_is_that_of_fleets_and_a_stated_one_that_of_groups_too(
    text: str, of_groups: dict[str, int]
) -> None:
    """Groups of other tools were sized without it; who states a reserve means all nodes.

    A reserve of memory had taken one CPU of the nodes of each group, too.
    """
    reserve = planner_settings(config_of("cluster: c\n" + text), load_catalogue()).reserve
    left_open = frozenset({"cpu", "memory"} - of_groups.keys())
    assert reserve.of("asg") == NodeReserve(amounts=FrozenMap(of_groups), as_eks=left_open)
    both = {"cpu": 1000, "memory": 2_684_354_560, **of_groups}
    assert reserve.of("ec2-fleet") == NodeReserve(amounts=FrozenMap(both))


def test_built_in_size_offers_its_options_with_prices_of_the_capacity_type() -> None:
    """A wrong figure makes pods pend on nodes that can never hold them."""
    text = "sectors: {a: {kind: memory, fleets: [{size: small, spot: false}]}}\n"
    (fleet,) = fleets_of(text)
    assert [o.instance_type for o in fleet.options] == [
        "r5.xlarge",
        "r4.xlarge",
        "m5.2xlarge",
        "m4.2xlarge",
    ]
    assert min(o.resources["memory"] for o in fleet.options) == int(30.5 * GIB)
    assert min(o.resources["cpu"] for o in fleet.options) == 4000
    assert fleet.usd_per_hour == Decimal("0.252")
    (spot,) = fleets_of(text.replace("spot: false", "spot: true"))
    assert spot.usd_per_hour is not None
    assert spot.usd_per_hour < Decimal("0.252")


def test_own_size_says_what_its_nodes_have() -> None:
    """A size of one's own is trusted over the catalogue, for types that it does not know too."""
    (fleet,) = fleets_of(
        "sizes: {big: {kind: gpu, cpu: 7500m, memory: 28Gi, pods: 30, ephemeral_storage: 80Gi,"
        " extended: {nvidia.com/gpu: 2}, arch: arm64, instance_types: [g5.xlarge, x99.huge],"
        " price_usd_per_hour: 2.5, spot_price_usd_per_hour: 0.75}}\n"
        "sectors: {g: {kind: gpu, fleets: [{size: big}]}}\n"
    )
    expected = {"cpu": 7500, "memory": 28 * GIB, "nvidia.com/gpu": 2, "pods": 30}
    assert [dict(o.resources) for o in fleet.options] == [expected, expected]
    assert {o.arch for o in fleet.options} == {"arm64"}
    assert fleet.usd_per_hour == Decimal("0.75")
    assert fleet.ephemeral_storage_bytes == 80 * GIB
    assert fleet.labels["kubernetes.io/arch"] == "arm64"


def test_fleet_of_unknown_type_has_no_price() -> None:
    """An unknown price taken for 0 would win every comparison."""
    (fleet,) = fleets_of(
        "sizes: {odd: {cpu: 2, memory: 4Gi, instance_types: [x99.huge]}}\n"
        "sectors: {a: {kind: cpu, fleets: [{size: odd}]}}\n"
    )
    assert fleet.usd_per_hour is None
    assert fleet.options[0].resources["pods"] == 110


def test_gpu_of_a_known_type_counts_without_being_stated() -> None:
    """GPU pods would never be placed on a size whose author named only CPU and memory."""
    (fleet,) = fleets_of(
        "sizes: {g: {cpu: 4, memory: 16Gi, instance_types: [g5.xlarge]}}\n"
        "sectors: {a: {kind: cpu, fleets: [{size: g}]}}\n"
    )
    assert fleet.options[0].resources["nvidia.com/gpu"] == 1
    assert fleet.labels["node.kubernetes.io/instance-type"] == "g5.xlarge"


def test_fleet_overrides_types_price_and_allocatable() -> None:
    """What the config states of a fleet itself is the last word."""
    (fleet,) = fleets_of(
        "sectors: {a: {kind: memory, fleets: [{size: small, instance_types: [r5.xlarge],"
        " price_usd_per_hour: 0.1, allocatable: {cpu: 3920m, memory: 29Gi, pods: 50}}]}}\n"
    )
    assert [o.instance_type for o in fleet.options] == ["r5.xlarge"]
    assert fleet.options[0].resources["memory"] == 32 * GIB
    assert fleet.usd_per_hour == Decimal("0.1")
    assert fleet.allocatable == {"cpu": 3920, "memory": 29 * GIB, "pods": 50}


def test_stated_allocatable_without_pod_slots_has_those_of_its_types() -> None:
    """A node without slots takes no pod: the fleet would never be used, and no fault tells why."""
    for fields, pods in (("", 58), ("pods: 20, ", 20)):
        (fleet,) = fleets_of(
            f"sizes: {{own: {{{fields}cpu: 4, memory: 30Gi, instance_types: [r5.xlarge],"
            " allocatable: {cpu: 3920m, memory: 29Gi}}}\n"
            "sectors: {a: {kind: memory, fleets: [{size: own}]}}\n"
        )
        assert fleet.allocatable == {"cpu": 3920, "memory": 29 * GIB, "pods": pods}


def test_startup_taints_are_none_of_what_a_new_node_keeps() -> None:
    """Agents take them off: a fleet with Cilium's taint never grew."""
    (fleet,) = fleets_of(
        "startup_taints: [example.com/initializing]\n"
        "sectors: {s: {kind: cpu, taints: [{key: node.cilium.io/agent-not-ready, value: 'true',"
        " effect: NoExecute}], fleets: [{size: small,"
        " taints: [{key: example.com/initializing, effect: NoSchedule},"
        " {key: gpu, effect: NoSchedule}]}]}}\n"
    )
    assert fleet.taints == (Taint(key="gpu", effect="NoSchedule"),)


def test_node_carries_labels_and_taints_of_every_level() -> None:
    """A pod that selects a label of its sector would be called unplaceable."""
    (fleet,) = fleets_of(
        "terraform: {node_labels: {team: data, stage: x}, on_demand_prefer_no_schedule_taint: on,"
        " node_taints: 'a=1:NoSchedule'}\n"
        "sectors: {s: {kind: cpu, labels: {stage: prod},"
        " taints: [{key: b, effect: NoExecute}], fleets: ["
        "{size: small, spot: false, zone: us-west-2a, labels: {rack: 7},"
        " taints: [{key: a, value: 2, effect: NoSchedule}]}]}}\n"
    )
    assert fleet.name == "s-small-us-west-2a"
    expected = {
        "team": "data",
        "stage": "prod",
        "rack": "7",
        "sector": "s",
        "fleet": "s-small-us-west-2a",
        "size": "small",
        "pool_size": "small",
        "kind": "cpu",
        "lifecycle": "OnDemand",
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/zone": "us-west-2a",
        "topology.ebs.csi.aws.com/zone": "us-west-2a",
    }
    assert fleet.labels == expected
    assert set(fleet.taints) == {
        Taint(key="a", value="2", effect="NoSchedule"),
        Taint(key="b", effect="NoExecute"),
        Taint(key="lifecycle", value="OnDemand", effect="PreferNoSchedule"),
    }


def test_scale_in_of_sector_and_fleet_override_single_keys() -> None:
    """A fleet that changes one key must not lose the others to the defaults."""
    (fleet,) = fleets_of(
        "scale_in: {idle_threshold: 5m, type_spares: 1}\n"
        "sectors: {a: {kind: cpu, scale_in: {type_spares: 2, move_bare_pods: true},"
        " fleets: [{size: small, scale_in: {max_empty_at_once: 3}}]}}\n"
    )
    scale_in = fleet.scale_in
    assert (scale_in.idle_threshold_seconds, scale_in.idle_threshold_explicit) == (300, True)
    assert (scale_in.type_spares, scale_in.empty_at_once_max) == (2, 3)
    assert scale_in.move_bare_pods


def test_scale_in_of_top_and_sector_is_kept_for_fleets_that_are_not_named() -> None:
    """A fleet that left the config would go by the rules of whichever fleet is named first."""
    settings = planner_settings(
        config_of(
            "cluster: c\nscale_in: {type_spares: 1}\n"
            "sectors: {a: {kind: cpu, scale_in: {move_bare_pods: true},"
            " fleets: [{size: small, scale_in: {type_spares: 3}}]}}\n"
        ),
        load_catalogue(),
    )
    (sector,) = settings.sectors
    assert (sector.scale_in.type_spares, sector.scale_in.move_bare_pods) == (1, True)
    assert (settings.scale_in.type_spares, settings.scale_in.move_bare_pods) == (1, False)


def test_idle_threshold_by_default_is_not_explicit() -> None:
    """A default must not lengthen the grace period that somebody chose."""
    (fleet,) = fleets_of("sectors: {a: {kind: cpu, fleets: [{size: small}]}}\n")
    assert fleet.scale_in.idle_threshold_seconds == 600
    assert not fleet.scale_in.idle_threshold_explicit


@pytest.mark.parametrize(
    ("sector", "fleet", "seconds"),
    [
        ("", "", [900]),
        (", inactive_grace_periods: [{value: 60}]", "", [60]),
        (", inactive_grace_periods: []", "", []),
        (", inactive_grace_periods: [{value: 60}]", ", inactive_grace_period: 30", [30]),
        ("", ", inactive_grace_periods: [{value: 1}], inactive_grace_period: 2", [1, 2]),
        ("", ", inactive_grace_periods: [{value: 1}]", [1]),
    ],
)
def test_nearest_grace_periods_hold(sector: str, fleet: str, seconds: list[float]) -> None:
    """A fleet of expensive nodes must not inherit the long grace of the rest."""
    (settings,) = fleets_of(
        "inactive_grace_periods: [{value: 900}]\n"
        f"sectors: {{a: {{kind: cpu{sector}, fleets: [{{size: small{fleet}}}]}}}}\n"
    )
    assert [period.seconds for period in settings.grace_periods] == seconds


def test_grace_period_without_days_holds_every_day() -> None:
    """No days must not mean never."""
    (fleet,) = fleets_of(
        "inactive_grace_periods: [{starts: 22:00, ends: 6:00, value: 1m}]\n"
        "sectors: {a: {kind: cpu, fleets: [{size: small}]}}\n"
    )
    assert fleet.grace_periods == (
        GracePeriod(starts=time(22), ends=time(6), weekdays=EVERY_DAY, seconds=60.0),
    )


def test_regions_come_from_the_nearest_level_and_fit_the_zone() -> None:
    """A fleet of one zone asked for in another Region would never launch."""
    text = (
        "regions: [us-west-2, us-east-1]\n"
        "sectors:\n  a:\n    kind: cpu\n    regions: [eu-west-1, us-east-1]\n    fleets:\n"
        "    - {size: small}\n"
        "    - {size: large, regions: [us-east-2]}\n"
        "    - {size: medium, zone: us-east-1b}\n"
    )
    assert [fleet.regions for fleet in fleets_of(text)] == [
        ("eu-west-1", "us-east-1"),
        ("us-east-2",),
        ("us-east-1",),
    ]


def test_fleet_in_allow_destroy_is_planned_only_where_it_is_rendered() -> None:
    """Terraform removes it elsewhere, which waits until the planner has drained it there."""
    text = "regions: [us-west-2, us-east-1]\nsectors: {a: {kind: cpu, fleets: [{size: small}]}}\n"
    assert [fleet.regions for fleet in fleets_of(text)] == [("us-west-2", "us-east-1")]
    going = "allow_destroy: [a-small]\n" + text
    assert [fleet.regions for fleet in fleets_of(going)] == [("us-west-2",)]
    both = going + "terraform: {by_region: {us-east-1: {ami: ami-1}}}\n"
    assert [fleet.regions for fleet in fleets_of(both)] == [("us-west-2", "us-east-1")]


def test_config_without_regions_lives_in_the_given_home() -> None:
    """Kluster Fleet Manager names no Region: the AWS settings do."""
    settings = planner_settings(
        config_of("cluster: c\nsectors: {a: {kind: cpu, fleets: [{size: small}]}}\n"),
        load_catalogue(),
        home_region="eu-north-1",
    )
    assert settings.regions == ("eu-north-1",)
    assert settings.fleets()[0].regions == ("eu-north-1",)


def test_config_without_cluster_asks_for_its_name() -> None:
    """Planning for an unnamed cluster would find no fleet by tag."""
    with pytest.raises(UsageError, match="--cluster-name"):
        planner_settings(config_of("{}"), load_catalogue())


def test_module_variables_of_three_levels_merge_tags_only() -> None:
    """A fleet's tag must add to the cluster's tags, its subnets must replace them."""
    fleet = resolved(
        "terraform: {ebs_size: 30, tags: {a: 1, b: 1},"
        " private_subnet_ids: {us-west-2a: subnet-1}}\n"
        "sectors: {s: {kind: cpu, terraform: {ebs_size: 40, tags: {b: 2}}, fleets: ["
        "{size: small, terraform: {tags: {c: 3}, private_subnet_ids: {us-west-2b: subnet-2}}}]}}\n"
    )
    assert fleet.terraform == {
        "ebs_size": 40,
        "tags": {"a": "1", "b": "2", "c": "3"},
        "private_subnet_ids": {"us-west-2b": "subnet-2"},
    }
    assert fleet.zones == ("us-west-2b",)


def test_initial_node_count_is_the_minimum_unless_stated() -> None:
    """A fleet that must have two nodes should be created with them."""
    text = "sectors: {s: {kind: cpu, fleets: [{size: small, min_capacity: 2%s}]}}\n"
    assert resolved(text.replace("%s", "")).initial_node_count == 2
    assert resolved(text.replace("%s", ", initial_node_count: 0")).initial_node_count == 0


def test_limits_of_cost_and_choice_reach_their_sectors() -> None:
    """A cap in dollars that is lost is a bill."""
    settings = planner_settings(
        config_of(
            "cluster: c\nmax_hourly_usd: 12.5\nexpander: random\nallow_destroy: [old-small]\n"
            "sectors: {a: {kind: cpu, fleets: [], max_hourly_usd: 2, expander: priority},"
            " b: {kind: cpu, fleets: []}}\n"
        ),
        load_catalogue(),
    )
    assert settings.usd_per_hour_max == Decimal("12.5")
    assert [(s.usd_per_hour_max, s.expander) for s in settings.sectors] == [
        (Decimal(2), "priority"),
        (None, "random"),
    ]
    assert settings.allow_destroy == {"old-small"}
    assert settings.raise_limits == RaiseLimits()


def test_limits_of_raises_hold_without_being_stated_and_as_stated() -> None:
    """A ceiling that somebody raised, or lowered, would stay where it was."""
    settings = planner_settings(
        config_of(
            "cluster: c\nraise_limits: {nodes_per_cycle: 20, hourly_usd_per_hour: 7.5}\n"
            "sectors: {a: {kind: cpu, fleets: []}}\n"
        ),
        load_catalogue(),
    )
    assert settings.raise_limits == RaiseLimits(
        nodes_per_cycle=20, hourly_usd_per_hour=Decimal("7.5")
    )
