"""What is happening to a node, decoded from what is written on it."""

from datetime import timedelta

import pytest

from reconciler.model.actions import (
    DRAIN_FAILED,
    DRAIN_STARTED,
    DRAINING_TAINT,
    INTERRUPTION,
    REPLACEMENT_ASKED,
    ROLLING_UPDATE,
    SPOT_RETURN,
)
from reconciler.model.cluster import Node, Taint
from reconciler.model.text import rfc3339
from reconciler.planner.disruption.node_disruption import Disruption
from reconciler.planner.disruption_settings import RollingUpdate
from reconciler.planner.explain.explain import explain
from reconciler.planner.planner import plan
from tests.builders import (
    NOW,
    ago,
    idle,
    make_cloud,
    make_fleet,
    make_fleet_settings,
    make_instance,
    make_node,
    make_pod,
    make_settings,
)
from tests.builders import make_snapshot as snapshot_of

FLEET = make_fleet_settings("small", scale_in=idle(600))
SETTINGS = make_settings(FLEET)


def disruption(node: Node, *pods: str) -> Disruption | None:
    """What an explanation says is happening to the node."""
    running = [make_pod(name, node=node.name) for name in pods]
    snapshot = snapshot_of(node, *running)
    return (
        explain(snapshot, SETTINGS, plan(snapshot, SETTINGS), nodes=[node.name]).nodes[0].disruption
    )


def drained_for(reason: str, **annotations: str) -> Node:
    """A node whose drain began two minutes ago."""
    taint = Taint(key=DRAINING_TAINT, value=reason, effect="NoSchedule")
    notes = {DRAIN_STARTED: rfc3339(ago(120)), **annotations}
    return make_node("n0", FLEET, taints=(taint,), annotations=notes)


def test_node_that_nothing_happens_to_has_no_disruption() -> None:
    """A stage on every node would hide the few that are disrupted."""
    assert disruption(make_node("n0", FLEET), "web") is None


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("scale-in", "graceful"),
        ("expiry", "graceful"),
        ("rolling-update", "graceful"),
        ("rebalance", "graceful"),
        ("interruption", "forced"),
    ],
)
def test_reason_and_class_are_those_of_the_taint(reason: str, kind: str) -> None:
    """Another replica goes on with the drain, or gives it back, by the taint alone."""
    found = disruption(drained_for(reason), "web")
    assert found is not None
    assert (found.reason, found.kind, found.stage) == (reason, kind, "draining")
    assert found.started == ago(120)


def test_drained_node_without_pods_is_empty() -> None:
    """It is ended next: there is nothing to look for that holds it."""
    found = disruption(drained_for("scale-in"))
    assert found is not None
    assert found.stage == "empty"


def test_interrupted_node_tells_when_its_instance_ends() -> None:
    """The deadline is what a person on call asks for first."""
    ends = NOW + timedelta(seconds=100)
    found = disruption(drained_for("interruption", **{INTERRUPTION: f"terminate/{rfc3339(ends)}"}))
    assert found is not None
    assert (found.kind, found.deadline) == ("forced", ends)
    assert f"{ends:%H:%M:%S}" in str(found)


@pytest.mark.parametrize(
    ("annotations", "stage", "reason"),
    [
        (
            {REPLACEMENT_ASKED: f"{rfc3339(ago(60))}/1"},
            "replacement-launching",
            "consolidation",
        ),
        ({REPLACEMENT_ASKED: f"{rfc3339(ago(7200))}/1"}, None, ""),
        ({SPOT_RETURN: rfc3339(ago(60))}, "requested", "spot-return"),
        ({ROLLING_UPDATE: "7/x"}, None, ""),
        ({DRAIN_FAILED: f"{rfc3339(ago(60))}/2"}, "cancelled", "drain-failed"),
        ({DRAIN_FAILED: f"{rfc3339(ago(20 * 3600))}/2"}, None, ""),
    ],
)
def test_stage_before_and_after_a_drain_is_read_from_annotations(
    annotations: dict[str, str], stage: str | None, reason: str
) -> None:
    """A replacement that never came and an old failure hold nothing back."""
    found = disruption(make_node("n0", FLEET, annotations=annotations), "web")
    assert (found.stage if found else None) == stage
    assert found is None or found.reason == reason


@pytest.mark.parametrize("switched_on", [True, False])
def test_node_of_a_batch_is_requested_while_its_update_lasts(switched_on: bool) -> None:
    """The mark alone, of an update that was switched off, said so for good."""
    mark = f"8/{rfc3339(ago(60))}/1"
    node = make_node("n0", FLEET, annotations={ROLLING_UPDATE: mark})
    live = make_fleet(FLEET, 1, launch_template_id="lt-1", launch_template_version="8")
    instance = make_instance(node, live, launch_template_version="7")
    snapshot = snapshot_of(
        node,
        make_pod("web", node="n0"),
        cloud=make_cloud(live, instances=[instance], instances_known=True),
    )
    rules = RollingUpdate() if switched_on else None
    settings = make_settings(FLEET, rolling_update=rules)
    (told,) = explain(snapshot, settings, plan(snapshot, settings), nodes=["n0"]).nodes
    assert (told.disruption and told.disruption.stage) == ("requested" if switched_on else None)


def test_cancelled_disruption_says_when_it_is_tried_again() -> None:
    """Why nothing happens to an unneeded node has to be readable."""
    node = make_node("n0", FLEET, annotations={DRAIN_FAILED: f"{rfc3339(ago(60))}/2"})
    found = disruption(node, "web")
    assert found is not None
    assert found.rests_until is not None
    assert found.rests_until > NOW
    assert "2 failed drains" in str(found)
