"""Draining nodes whose fleet or region left the config: given back, where they are surely ours."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.model.actions import (
    DRAIN_STARTED,
    DRAINING_TAINT,
    INTERRUPTION,
    UNNEEDED_SINCE,
    AnnotateNode,
    UntaintNode,
)
from reconciler.model.cluster import Node, Taint
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import FleetId, Region
from reconciler.model.plan import Plan
from reconciler.model.text import rfc3339
from reconciler.planner.planner import plan
from tests.builders import (
    AWAY,
    HOME,
    ago,
    make_cloud,
    make_fleet,
    make_fleet_settings,
    make_instance,
    make_node,
    make_settings,
    make_snapshot,
)
from tests.unit.planner.disruption.scale_in.scene import annotations_set, full, noted, on, told

FLEET = make_fleet_settings()
DAY = 86_400
BOTH = frozenset({HOME, AWAY})


def tainted(value: str = "scale-in", seconds: float = 30, **changed: Any) -> Node:
    """A node of another region whose drain began some seconds ago."""
    taint = Taint(key=DRAINING_TAINT, value=value, effect="NoSchedule")
    annotations = noted({DRAIN_STARTED: seconds, UNNEEDED_SINCE: 3600}, changed)
    changed = {"region": AWAY, "taints": (taint,), **changed}
    return make_node("a", FLEET, annotations=annotations, **changed)


def planned(node: Node, *, asked: frozenset[Region] = BOTH, **changed: Any) -> Plan:
    """The plan of a config whose fleet is at home only; `named` are the regions at its top."""
    here, home = make_node("proof", FLEET), make_fleet(FLEET, 1)
    away = make_fleet(FLEET, 1, region=AWAY)
    instances = [make_instance(here, home)]
    if AWAY in asked:
        instances.append(make_instance(node, away))
    fleets = [home, away] if AWAY in asked else [home]
    named = changed.pop("named", (HOME, AWAY))
    cloud = make_cloud(*fleets, instances=instances, regions=asked, **changed)
    snapshot = make_snapshot(node, here, on("a"), full("proof"), cloud=cloud, relists=2)
    return plan(snapshot, make_settings(FLEET, regions=named))


@pytest.mark.parametrize("value", ["scale-in", "spot-reschedule", "interruption"])
def test_node_in_a_region_that_its_fleet_left_is_given_back(value: str) -> None:
    """It would stay closed for good, and nothing would say so."""
    made = planned(tainted(value))
    assert told(made, UntaintNode) == ["a"]
    assert ("a", "drain-started", None) in annotations_set(made)


def test_taint_of_a_person_stays() -> None:
    """Somebody who borrows our key for work on the machine would find pods on it."""
    assert told(planned(tainted("maintenance")), UntaintNode) == []


def test_node_that_ec2_takes_back_stays_closed_until_its_notice_is_over() -> None:
    """Pods would come to a node with two minutes to live, as its fleet left the config for once."""
    for left, result in ((60, []), (-301, ["a"])):
        text = f"terminate/{rfc3339(ago(-left))}"
        node = tainted("interruption", annotations={INTERRUPTION: text})
        made = planned(node)
        assert told(made, UntaintNode) == result
        assert (("a", "drain-started", None) in annotations_set(made)) is bool(result)


def test_drain_in_a_region_that_is_not_asked_any_more_ends_after_a_day() -> None:
    """EC2 would never tell of it again; sooner, another program may go on with a drain there."""
    for seconds, result in ((DAY - 1, []), (DAY + 1, ["a"])):
        made = planned(tainted(seconds=seconds), asked=frozenset({HOME}), named=(HOME,))
        assert told(made, UntaintNode) == result


def test_drain_of_a_kind_of_fleets_that_is_not_asked_for_any_more_ends_after_a_day() -> None:
    """With its last Auto Scaling group out of the config, nothing shows the group's nodes."""
    for seconds, result in ((DAY - 1, []), (DAY + 1, ["a"])):
        node = tainted(seconds=seconds)
        asked: Any = {"asked": frozenset({HOME}), "providers": frozenset({"ec2-fleet"})}
        assert told(planned(node, **asked), UntaintNode) == result


def test_region_that_does_not_answer_now_is_not_one_that_left_the_config() -> None:
    """An outage of EC2 would open every draining node of the region."""
    silent = frozenset({AWAY})
    for named in ((HOME, AWAY), (HOME,)):
        node = tainted(seconds=2 * DAY)
        made = planned(node, asked=frozenset({HOME}), silent=silent, named=named)
        assert told(made, UntaintNode) == []
    unlisted = planned(tainted(seconds=2 * DAY), asked=frozenset({HOME}))
    assert told(unlisted, UntaintNode) == []


def test_node_of_somebody_else_in_our_region_is_not_touched() -> None:
    """Another cluster's program, with tags of its own, would lose its drains."""
    theirs = tainted(seconds=2 * DAY, region=HOME)
    theirs = replace(theirs, labels=FrozenMap({**theirs.labels, "fleet": "theirs"}))
    made = planned(theirs, asked=frozenset({HOME}), named=(HOME,))
    assert "a" not in told(made, UntaintNode) + told(made, AnnotateNode)


def test_orphan_is_not_left_with_the_taint_of_an_interruption() -> None:
    """An empty one would never be ended, and take no pods."""
    node = tainted("interruption", region=HOME)
    here, live = make_node("proof", FLEET), make_fleet(FLEET, 1)
    dead = make_fleet(FLEET, 1, id=FleetId("fleet-dead"), state="deleted_running")
    tags = FrozenMap({"cluster": "c", "fleet": FLEET.name})
    instances = [make_instance(here, live), make_instance(node, dead, tags=tags)]
    cloud = make_cloud(live, dead, instances=instances)
    made = plan(make_snapshot(node, here, full("proof"), cloud=cloud), make_settings(FLEET))
    assert told(made, UntaintNode) == ["a"]
