"""A Node that does not say what it offers is reported, never removed, and never a stuck one."""

from typing import Any

import pytest

from reconciler.model.actions import TerminateInstance
from reconciler.planner.planner import plan
from tests.builders import (
    ago,
    make_cloud,
    make_fleet,
    make_fleet_settings,
    make_instance,
    make_node,
    make_settings,
    make_snapshot,
)
from tests.unit.records.kubernetes.kube import Json, decode, node_json

BARE: list[Json] = [
    {"allocatable": None},
    {"allocatable": None, "conditions": []},
]


def without_status() -> Json:
    """A node as somebody may create it by hand."""
    made = node_json()
    del made["status"]
    return made


@pytest.mark.parametrize(
    "raw",
    [without_status(), *(node_json(status=status) for status in BARE)],
    ids=["no status", "null", "null and no condition"],
)
def test_node_without_allocatable_is_reported_unreadable(raw: Json) -> None:
    """It passed as a node that is there and offers nothing, and nobody was told."""
    state = decode(raw)
    (told,) = state.ignored
    assert (told.code, told.kind, told.name) == ("unreadable", "Node", raw["metadata"]["name"])
    (node,) = state.nodes
    assert node.unreadable
    assert not node.ready


def test_node_that_offers_nothing_is_readable() -> None:
    """An empty list is an answer."""
    assert decode(node_json(status={"allocatable": {}})).ignored == ()


def test_instance_of_a_bare_node_is_not_stuck_and_stays() -> None:
    """Hours after its launch it would be ended as one that never joined."""
    fleet = make_fleet_settings("small")
    named: Any = make_node("n", fleet)
    live = make_fleet(fleet, 1)
    instance = make_instance(named, live, launched_at=ago(86_400))
    raw = node_json("n", status={"allocatable": None}, providerID=named.provider_id)
    raw["metadata"]["labels"] = dict(named.labels)
    (bare,) = decode(raw).nodes
    made = plan(
        make_snapshot(bare, cloud=make_cloud(live, instances=[instance]), relists=2),
        make_settings(fleet),
    )
    assert not [a for a in made.actions if isinstance(a, TerminateInstance)]
    assert made.actions == ()
