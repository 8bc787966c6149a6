"""The demo's sector config, for each provider of nodes."""

import pytest

from reconciler.config.loader import Purpose, parse_config
from reconciler.config.resolve import resolve_fleets
from reconciler.demo.workloads import DemoProvider, example_config


@pytest.mark.parametrize(
    ("provider", "groups"),
    [
        ("ec2-fleet", set()),
        ("mixed", {"batch-small", "batch-medium", "batch-large"}),
        (
            "asg",
            {
                *("batch-small", "batch-medium", "batch-large"),
                *("data-small", "data-medium", "platform-small"),
            },
        ),
    ],
)
def test_example_config_has_groups_where_the_provider_says_so(
    provider: DemoProvider, groups: set[str]
) -> None:
    """A demo of groups that runs on fleets shows nothing."""
    config = parse_config(example_config(provider), purpose=Purpose.RENDER)
    fleets = resolve_fleets(config)
    assert {fleet.name for fleet in fleets if fleet.is_group} == groups
    named = {f.name: f.entry.auto_scaling_group for f in fleets if f.is_group}
    assert named == {name: f"analytics-{name}" for name in groups}
    others = resolve_fleets(parse_config(example_config()))
    assert [(f.name, f.entry.max_capacity, f.entry.spot) for f in fleets] == [
        (f.name, f.entry.max_capacity, f.entry.spot) for f in others
    ]
