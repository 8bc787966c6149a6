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


@pytest.mark.parametrize(("is_group", "most"), [(False, 61), (True, 55)])
def test_launch_template_s_name_has_at_most_125_characters(is_group: bool, most: int) -> None:
    """EC2 takes 128 and Terraform's provider 125: nothing of the root module could be planned.

    A group's launch template has a longer name than a fleet's.
    """
    text = group(", zone: " + "z" * 55)
    if not is_group:
        text = text.replace(" provider: asg, auto_scaling_group: 'workers',", "")
    fits = text.replace("cluster: a", "cluster: " + "a" * most)
    long = text.replace("cluster: a", "cluster: " + "a" * (most + 1))
    assert found(fits) == []
    assert [fault[0] for fault in found(long)] == ["name/label"]


def test_stated_name_of_a_launch_template_has_at_most_125_characters() -> None:
    """The provider refuses a longer one, and with it every plan of the root module."""
    text = "sectors: {s: {kind: memory, fleets: [{size: small, terraform: {KEY: NAME}}]}}\n"
    text = text.replace("KEY", "launch_template_name")
    assert found(text.replace("NAME", "n" * 125)) == []
    assert len(found(text.replace("NAME", "n" * 126))) == 1
