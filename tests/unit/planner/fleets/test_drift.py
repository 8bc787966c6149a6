"""Nodes that their fleet would launch otherwise: what is reported, and what is not known."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.model.fleet import TEMPLATE_ID_TAG, Fleet, Instance
from reconciler.model.frozen import FrozenMap
from reconciler.model.plan import DriftedNodes
from reconciler.planner.explain.explain import explain
from reconciler.planner.fleets.updates.drift import drift_of
from reconciler.planner.planner import plan
from tests.builders import (
    HOME,
    make_cloud,
    make_fleet,
    make_fleet_settings,
    make_instance,
    make_node,
    make_pod,
    make_settings,
    make_snapshot,
)

FLEET = make_fleet_settings()
SETTINGS = make_settings(FLEET)


def live(version: str = "8", types: tuple[str, ...] = ()) -> Fleet:
    """The fleet of these tests as EC2 shows it."""
    return make_fleet(
        FLEET,
        2,
        launch_template_id="lt-1",
        launch_template_version=version,
        instance_types=types,
    )


def behind(name: str, version: str, **changed: Any) -> Instance:
    """The instance of a node that was launched from this version."""
    return make_instance(make_node(name, FLEET), live(), launch_template_version=version, **changed)


def test_node_of_another_template_version_is_drifted() -> None:
    """An image that was rolled back drifts as one that is too old does."""
    for own in ("7", "9"):
        found = drift_of(live("8"), behind("a", own))
        assert list(found.reasons) == ["launch-template-version"]
        assert f"version {own} " in str(found)
        assert "the fleet's is 8" in str(found)


def test_node_as_its_fleet_would_launch_it_is_not_drifted() -> None:
    """A replacement that counted as drifted would itself be replaced, without an end."""
    own = behind("a", "8", tags=FrozenMap({TEMPLATE_ID_TAG: "lt-1"}))
    found = drift_of(live("8", (own.instance_type,)), own)
    assert (dict(found.reasons), found.unknown, str(found)) == ({}, "", "")


def test_type_that_the_fleet_no_longer_launches_is_drift() -> None:
    """A type that was taken out of the config stays in use unnoticed."""
    found = drift_of(live("8", ("m7g.large",)), behind("a", "8"))
    assert list(found.reasons) == ["instance-type"]


def test_subnet_in_which_the_fleet_no_longer_launches_is_drift() -> None:
    """Whoever takes a zone out of the config wants nothing to run there."""
    fleet = replace(live("8"), subnet_ids=("subnet-a", "subnet-b"))
    assert list(drift_of(fleet, behind("a", "8", subnet_id="subnet-c")).reasons) == ["subnet"]
    assert not drift_of(fleet, behind("a", "8", subnet_id="subnet-b")).reasons
    assert not drift_of(fleet, behind("a", "8")).reasons
    assert not drift_of(live("8"), behind("a", "8", subnet_id="subnet-c")).reasons


@pytest.mark.parametrize(
    ("fleet", "instance", "why"),
    [
        (None, behind("a", "7"), "does not show its fleet"),
        (live(), None, "does not show its instance"),
        (live(""), behind("a", "7"), "the fleet's launch template version"),
        (live("$Latest"), behind("a", "7"), "the fleet's launch template version"),
        (live(), behind("a", ""), "does not say"),
        (live(), behind("a", "7", tags=FrozenMap({TEMPLATE_ID_TAG: "lt-2"})), "lt-2"),
    ],
)
def test_what_cannot_be_compared_is_unknown_and_no_drift(
    fleet: Fleet | None, instance: Instance | None, why: str
) -> None:
    """Numbers of versions that are not known, or of two templates, prove nothing."""
    found = drift_of(fleet, instance)
    assert dict(found.reasons) == {}
    assert why in found.unknown
    assert str(found).startswith("unknown: ")


@pytest.mark.parametrize(
    ("tags", "version", "drifted"),
    [
        ({TEMPLATE_ID_TAG: "lt-1"}, "9", False),
        ({TEMPLATE_ID_TAG: "lt-1"}, "3", True),
        ({TEMPLATE_ID_TAG: "lt-2"}, "3", False),
        ({TEMPLATE_ID_TAG: "lt-2"}, "8", True),
        ({}, "3", False),
        ({}, "7", True),
    ],
)
def test_fleet_of_several_templates_launches_from_all_of_them(
    tags: dict[str, str], version: str, drifted: bool
) -> None:
    """Nodes of the second one were replaced by each rolling update, for ever."""
    fleet = replace(live("8"), further_templates=(("lt-1", "9"), ("lt-2", "3")))
    found = drift_of(fleet, behind("a", version, tags=FrozenMap(tags)))
    assert (bool(found.reasons), found.unknown) == (drifted, "")


def test_fleet_without_known_types_has_no_type_drift() -> None:
    """A fleet that chooses types by their attributes names none."""
    assert dict(drift_of(live("8", ()), behind("a", "8")).reasons) == {}


def test_drift_is_counted_and_explained_and_changes_no_action() -> None:
    """A new image must be visible before anything acts on it, and by itself move no pod."""
    nodes = [make_node(name, FLEET) for name in ("a", "b")]
    pods = [make_pod(f"on-{n.name}", node=n.name, cpu=3) for n in nodes]
    old, new = (
        make_snapshot(
            *nodes,
            *pods,
            cloud=make_cloud(live("8"), instances=[behind("a", version), behind("b", "8")]),
        )
        for version in ("7", "8")
    )
    made = plan(old, SETTINGS)
    assert made.drifted == (
        DriftedNodes(fleet=FLEET.name, region=HOME, reason="launch-template-version", nodes=1),
    )
    assert made.actions == plan(new, SETTINGS).actions
    assert plan(new, SETTINGS).drifted == ()
    told = explain(old, SETTINGS, made, nodes=["a", "b"]).nodes
    assert told[0].drift.startswith("drifted: launched from version 7 ")
    assert told[1].drift == ""


def test_plan_without_answers_of_ec2_says_nothing_about_drift() -> None:
    """Every node of an offline plan would be called unknown."""
    snapshot = make_snapshot(make_node("a", FLEET))
    made = plan(snapshot, SETTINGS)
    assert made.drifted == ()
    assert explain(snapshot, SETTINGS, made, nodes=["a"]).nodes[0].drift == ""
