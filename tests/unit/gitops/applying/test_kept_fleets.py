"""Fleets that Terraform leaves alone while they are drained."""

import json
from typing import Any

import pytest

from reconciler.gitops.applying.kept_fleets import kept_variables
from reconciler.gitops.terraform_plan.planned import PlannedFleet, fleets
from reconciler.model.errors import Refused
from tests.unit.gitops.plans import ended, group_change, plan


def kept(fleet: PlannedFleet, **others: dict[str, Any]) -> dict[str, Any]:
    """The variables' fleets."""
    tfvars = json.dumps({"cluster_name": "analytics", "fleets": others}).encode()
    found = json.loads(kept_variables(tfvars, [fleet]))
    assert found["cluster_name"] == "analytics"
    fleets_there: dict[str, Any] = found["fleets"]
    assert {name: fleets_there[name] for name in others} == others
    return fleets_there


@pytest.mark.parametrize(
    ("key", "tags", "parts"),
    [
        (
            "web-small",
            {"sector": "web", "size": "small", "kind": "cpu"},
            ("web", "small", "", "cpu"),
        ),
        (
            "a-b-c-us-west-2b",
            {"sector": "a-b", "size": "c", "kind": "gpu"},
            ("a-b", "c", "us-west-2b", "gpu"),
        ),
        ("web-small", {"sector": "other", "size": "big"}, ("web", "small", "", "memory")),
        ("a-b-c", {}, ("a-b", "c", "", "memory")),
    ],
)
def test_kept_fleet_has_values_that_give_its_key(
    key: str, tags: dict[str, str], parts: tuple[str, ...]
) -> None:
    """The modules refuse a fleet whose key is not its sector, size and zone."""
    found = kept(ended(key, **tags))[key]
    names = ("sector_label", "node_pool_size", "zone", "node_pool_kind")
    assert tuple(found[name] for name in names) == parts
    assert set(found["private_subnet_ids"]) == {parts[2] or "us-west-2a"}
    assert found["departing"], "its size may come again, by zone or without"


def test_kept_fleet_has_the_kind_of_its_sector() -> None:
    """The modules refuse a sector of two kinds."""
    other = {"sector_label": "web", "node_pool_size": "medium", "node_pool_kind": "cpu"}
    found = kept(ended("web-small", sector="web", size="small", kind="memory"), w=other)
    assert found["web-small"]["node_pool_kind"] == "cpu"


def test_kept_group_stays_a_group() -> None:
    """As a fleet it would be another resource, and Terraform would end the group with its nodes."""
    (group,) = fleets(plan(group_change(["delete"])))
    found = kept(group)["web-small"]
    assert (found["auto_scaling_group"], found["departing"]) == ("analytics-web-small", True)


def test_fleet_that_the_variables_have_is_left_as_it_is() -> None:
    """A fleet that is replaced keeps the values of the config."""
    other = {"sector_label": "web", "node_pool_size": "small", "node_pool_kind": "cpu", "ami": "x"}
    found = kept(ended("web-small", sector="web", size="small"), **{"web-small": other})
    assert found == {"web-small": other}


@pytest.mark.parametrize("tfvars", [b"", b"[]", b"{}", b'{"fleets": 3}'])
def test_variables_that_cannot_be_read_are_refused(tfvars: bytes) -> None:
    """A part of an apply must not be made from half of the variables."""
    with pytest.raises(Refused, match="cannot be read"):
        kept_variables(tfvars, [ended("web-small")])
