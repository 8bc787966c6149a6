"""From a sector config to the root module of its home Region."""

from typing import Any

import pytest

from reconciler.config.loader import parse_config
from reconciler.gitops.rendering.root_module import RootModule, S3Backend, root_module_of
from reconciler.model.errors import UsageError

FULL = """
cluster: analytics
regions: [us-west-2, us-east-1]
sizes:
  gpu-small: {kind: gpu, cpu: 4, memory: 16Gi, instance_types: [g5.xlarge, g4dn.xlarge]}
terraform:
  ami: ami-0a
  ebs_size: 50
  private_subnet_ids: {us-west-2a: subnet-a, us-west-2b: subnet-b}
  tags: {environment: production, team: platform}
  node_labels: {tier: standard}
  node_taints: [{key: base, effect: NoSchedule}]
  backend: {bucket: states, key: fleets.tfstate, region: eu-west-1}
sectors:
  primary:
    kind: memory
    labels: {team: data}
    taints: [{key: batch, value: "yes", effect: NoSchedule}]
    terraform: {ebs_size: 100, tags: {team: data}}
    fleets:
    - {size: small, min_capacity: 3}
    - size: medium
      min_capacity: 3
      initial_node_count: 0
      spot: false
      labels: {team: ml}
      taints: [{key: batch, value: "no", effect: NoSchedule}]
      terraform: {ami: ami-0b, tags: {cost: high}}
    - {size: large, regions: [us-east-1]}
    - {size: xlarge, provider: asg, auto_scaling_group: workers, managed: false}
    - {size: xsmall, provider: asg, auto_scaling_group: analytics-xsmall, max_capacity: 40}
  gpu:
    kind: gpu
    fleets:
    - {size: gpu-small}
"""


def root_of(text: str, **arguments: Any) -> RootModule:
    """The root module of a config text."""
    return root_module_of(parse_config(text), **arguments)


@pytest.fixture(scope="module")
def root() -> RootModule:
    """The root module of a config with everything in it."""
    return root_of(FULL)


def test_root_module_fleet_variables_merge_top_sector_and_fleet(root: RootModule) -> None:
    """A level that is forgotten launches nodes with the wrong image, volume or tags."""
    assert root.fleets["primary-medium"] == {
        "sector_label": "primary",
        "node_pool_size": "medium",
        "node_pool_kind": "memory",
        "spot": False,
        "initial_node_count": 0,
        "ami": "ami-0b",
        "ebs_size": 100,
        "private_subnet_ids": {"us-west-2a": "subnet-a", "us-west-2b": "subnet-b"},
        "tags": {"environment": "production", "team": "data", "cost": "high"},
        "node_labels": {"tier": "standard", "team": "ml"},
        "node_taints": [
            {"key": "base", "value": "", "effect": "NoSchedule"},
            {"key": "batch", "value": "no", "effect": "NoSchedule"},
        ],
    }


def test_root_module_first_target_without_initial_node_count_is_min_capacity(
    root: RootModule,
) -> None:
    """A fleet created below its minimum would leave its pods waiting for the capacity loop."""
    assert root.fleets["primary-small"]["initial_node_count"] == 3
    assert root.fleets["primary-small"]["spot"] is True


def test_root_module_own_size_gives_its_instance_types(root: RootModule) -> None:
    """The module does not know own sizes: without their types it could launch nothing."""
    assert root.fleets["gpu-gpu-small"]["instance_types"] == ["g5.xlarge", "g4dn.xlarge"]


def test_root_module_fleet_s_own_instance_types_win() -> None:
    """A fleet narrowed to one type must not launch the other types of its size."""
    root = root_of(
        "{cluster: c, sectors: {p: {kind: cpu, fleets:"
        " [{size: small, instance_types: [c7g.large]}]}}}"
    )
    assert root.fleets["p-small"]["instance_types"] == ["c7g.large"]


def test_root_module_leaves_out_unmanaged_ones_with_a_reason_and_other_regions_without(
    root: RootModule,
) -> None:
    """A fleet of another Region would be made with subnets that do not exist here."""
    assert sorted(root.fleets) == [
        "gpu-gpu-small",
        "primary-medium",
        "primary-small",
        "primary-xsmall",
    ]
    assert root.left_out == {
        "primary-xlarge": "managed: false leaves it to whoever made it",
    }


def test_root_module_of_a_group_has_its_name_and_size_and_no_variable_of_fleets() -> None:
    """The module refuses what it has no variable for; a lost maximum is 1000 nodes."""
    root = root_of(
        "{cluster: c, regions: [us-west-2], sizes: {gpu: {kind: gpu, cpu: 4, memory: 16Gi,"
        " extended: {nvidia.com/gpu: 1}, instance_types: [g5.xlarge]}},"
        " terraform: {ami: ami-0a, max_prices: {g5.xlarge: 1}, on_demand_base_capacity: 2,"
        " spot_allocation_strategy: diversified},"
        " sectors: {p: {kind: gpu, fleets: [{size: gpu, provider: asg, max_capacity: 0,"
        " auto_scaling_group: g}, {size: gpu, lifecycle: on-demand, provider: asg,"
        " auto_scaling_group: h}]}, q: {kind: gpu, fleets: [{size: gpu}]}}}"
    )
    group, on_demand, fleet = (root.fleets[n] for n in ("p-gpu", "p-gpu-on-demand", "q-gpu"))
    assert group == {
        "ami": "ami-0a",
        "auto_scaling_group": "g",
        "initial_node_count": 0,
        "instance_types": ["g5.xlarge"],
        "max_size": 0,
        "node_pool_kind": "gpu",
        "node_pool_size": "gpu",
        "node_resources": {"nvidia.com/gpu": "1"},
        "on_demand_base_capacity": 2,
        "sector_label": "p",
        "spot": True,
    }
    assert {"max_size", "on_demand_base_capacity"}.isdisjoint(on_demand)
    assert fleet["spot_allocation_strategy"] == "diversified"
    assert {"auto_scaling_group", "node_resources", "on_demand_base_capacity"}.isdisjoint(fleet)


def test_root_module_backend_and_region_are_the_config_s(root: RootModule) -> None:
    """State in another bucket would make Terraform create every fleet a second time."""
    assert root.region == "us-west-2"
    assert root.backend == S3Backend(bucket="states", key="fleets.tfstate", region="eu-west-1")
    assert "backend" not in root.fleets["primary-small"]


def test_root_module_zone_is_part_of_the_name() -> None:
    """Two fleets of one size in two zones must not be one resource."""
    root = root_of(
        "{cluster: c, sectors: {p: {kind: cpu, fleets: [{size: small, zone: us-west-2a},"
        " {size: small, zone: us-west-2b}]}}}"
    )
    assert [(name, v["zone"]) for name, v in sorted(root.fleets.items())] == [
        ("p-small-us-west-2a", "us-west-2a"),
        ("p-small-us-west-2b", "us-west-2b"),
    ]


def test_root_module_inherited_max_price_is_for_spot_fleets_only() -> None:
    """One limit at the top must not make the on-demand fleets of the same config invalid."""
    root = root_of(
        "{cluster: c, terraform: {max_price: 1.5}, sectors: {p: {kind: cpu, fleets:"
        " [{size: small}, {size: medium, spot: false}]}}}"
    )
    prices = {name: variables.get("max_price") for name, variables in root.fleets.items()}
    assert prices == {"p-small": "1.5", "p-medium": None}


def test_root_module_of_a_config_without_cluster_asks_for_its_name() -> None:
    """Tags with a wrong cluster name would hide the fleets from the capacity loop."""
    text = "sectors: {p: {kind: cpu, fleets: [{size: small}]}}"
    with pytest.raises(UsageError, match="--cluster-name"):
        root_of(text)
    assert root_of(text, cluster_name="analytics").cluster_name == "analytics"
