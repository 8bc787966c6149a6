"""What `validate` refuses of Auto Scaling groups that Terraform makes."""

import pytest

from tests.unit.config.documents import found

LABELS = ", ".join(f"k{n}: v" for n in range(37))


def group(keys: str = "", variables: str = "", name: str = "workers") -> str:
    """A config with one group."""
    fleet = (
        f"{{size: small, provider: asg, auto_scaling_group: '{name}'{keys},"
        f" terraform: {{{variables}}}}}"
    )
    return f"cluster: a\nsectors: {{s: {{kind: memory, fleets: [{fleet}]}}}}\n"


@pytest.mark.parametrize(
    ("text", "key", "code"),
    [
        (group(variables="max_prices: {m5.large: 1}"), "max_prices", "terraform/value"),
        (group(variables="fleet_tags: {a: b}"), "fleet_tags", "terraform/value"),
        (
            group(variables="spot_allocation_strategy: diversified"),
            "spot_allocation_strategy",
            "terraform/value",
        ),
        (group(name="a:b"), "auto_scaling_group", "terraform/value"),
        (group(name="a" * 256), "auto_scaling_group", "terraform/value"),
        (
            group(variables="mixed_instances_policy: false"),
            "mixed_instances_policy",
            "terraform/value",
        ),
        (
            group(", spot: false", "on_demand_base_capacity: 1"),
            "on_demand_base_capacity",
            "terraform/value",
        ),
        (
            group(variables="group_tags: [{key: a, value: b}, {key: a}]"),
            "group_tags",
            "terraform/value",
        ),
        (
            group(variables="group_tags: [{key: cluster, value: b}]"),
            "group_tags",
            "terraform/value",
        ),
        (group(f", labels: {{{LABELS}}}"), "fleets[0]", "terraform/limit"),
    ],
)
def test_what_the_module_refuses_of_a_group_is_a_fault_at_its_place(
    text: str, key: str, code: str
) -> None:
    """The pipeline would stop at a commit that validated."""
    assert [(fault[0], fault[1].rpartition(".")[2]) for fault in found(text)] == [(code, key)]


@pytest.mark.parametrize(
    "text",
    [
        group(variables="on_demand_base_capacity: 2, on_demand_percentage_above_base_capacity: 50"),
        group(
            ", spot: false, instance_types: [m5.large]",
            "mixed_instances_policy: false, launch_template_instance_type: m5.large",
        ),
        group(f", labels: {{{LABELS.replace('k0: v, ', '')}}}"),
        group(f", managed: false, labels: {{{LABELS}}}", name="a:b"),
        group(variables="group_tags: [{key: a, value: b, propagate_at_launch: true}]"),
        group(variables="group_tags: [{key: cluster, value: a}, {key: clusters, value: b}]"),
    ],
)
def test_what_the_module_takes_of_a_group_is_no_fault(text: str) -> None:
    """A group that others made would otherwise be left out of an import."""
    assert found(text) == []


def test_variable_of_groups_is_a_fault_of_a_fleet_that_states_it_itself() -> None:
    """It would do nothing; of the whole config's variables each fleet takes what is for it."""
    mixed = "on_demand_base_capacity: 2"
    of_all = (
        f"terraform: {{{mixed}}}\nsectors: {{s: {{kind: memory, fleets: [{{size: small}}]}}}}\n"
    )
    own = f"sectors: {{s: {{kind: memory, fleets: [{{size: small, terraform: {{{mixed}}}}}]}}}}\n"
    assert found(of_all) == []
    assert [fault[0] for fault in found(own)] == ["terraform/value"]


def test_group_s_launch_template_has_a_longer_name_than_a_fleet_s() -> None:
    """EC2 takes 128 characters, and the apply would stop half-way."""
    text = group(", zone: " + "z" * 55)
    long = text.replace("cluster: a", "cluster: " + "a" * 62)
    assert found(text) == []
    assert [fault[0] for fault in found(long)] == ["name/label"]
