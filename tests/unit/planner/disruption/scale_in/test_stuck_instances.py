"""Instances that never join (docs/scale-in.md)."""

from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.model.actions import TerminateInstance
from reconciler.model.ids import InstanceId
from reconciler.model.plan import Plan
from reconciler.model.saved_state import SavedFleetState
from reconciler.model.snapshot import CloudState
from reconciler.planner.planner import plan
from tests.builders import (
    HOME,
    NOW,
    ago,
    kept_proof,
    make_cloud,
    make_fleet,
    make_fleet_settings,
    make_instance,
    make_node,
    make_pod,
    make_settings,
    make_snapshot,
)
from tests.unit.planner.disruption.scale_in.scene import FLEET, full, instance, with_instances
from tests.unit.planner.placed import ended


@pytest.mark.parametrize(("seconds", "stuck"), [(899, []), (900, ["i-0"])])
def test_instance_is_stuck_after_the_init_time(seconds: float, stuck: list[str]) -> None:
    """A slow boot would be killed, or a dead one paid for for ever."""
    assert ended(with_instances(1, seconds)) == stuck


def test_nothing_is_stuck_while_a_pod_runs_on_a_node_that_is_not_listed() -> None:
    """A list of nodes with holes would have the machines behind the holes ended at work."""
    unlisted = make_pod("at-work", node="node-of-i-0")
    assert ended(with_instances(1, 3600, unlisted)) == []
    assert ended(with_instances(1, 3600, replace(unlisted, phase="Succeeded"))) == ["i-0"]


def test_pod_that_cannot_end_on_a_node_of_the_past_keeps_no_instance() -> None:
    """One forgotten finalizer would leave every stuck instance of the cluster as it is."""
    unlisted = make_pod("forgotten", node="long-gone", deleting=True)
    assert ended(with_instances(1, 3600, unlisted)) == ["i-0"]


def test_pod_that_no_kubelet_took_keeps_no_instance() -> None:
    """Anybody may write the name of a node that there is not into a pod."""
    ghost = make_pod("ghost", "tenant", node="no-such-node", phase="Pending")
    assert ended(with_instances(1, 3600, ghost)) == ["i-0"]
    assert ended(with_instances(1, 3600, replace(ghost, started_at=ago(60)))) == []


def test_pod_that_keeps_instances_is_named() -> None:
    """Others' pods would wait for a dead instance, and nobody would know why it stays."""
    made = with_instances(2, 3600, make_pod("at-work", node="node-of-i-0"))
    detail = "pod ns/at-work runs on node node-of-i-0, which is not listed"
    assert [(h.instance, h.code, h.detail) for h in made.held] == [
        ("i-0", "unlisted-node", detail),
        ("i-1", "unlisted-node", detail),
    ]
    assert with_instances(2, 60, make_pod("at-work", node="node-of-i-0")).held == ()


def test_stuck_instance_is_replaced_not_given_up() -> None:
    """A lower target would leave the pods that wait for it without a node."""
    made = with_instances(1, 1000, make_pod())
    (action,) = made.actions
    assert isinstance(action, TerminateInstance)
    assert (action.node, action.decrement, action.policy) == (None, False, "stuck-instance")
    assert [f.target for f in made.fleets] == [1]


@pytest.mark.parametrize(("before", "falls"), [(0, False), (1, False), (2, True)])
def test_target_falls_from_the_third_in_a_row_that_nothing_asks_for(
    before: int, falls: bool
) -> None:
    """EC2 launched, and we ended, three of them an hour for pods that had gone long ago."""
    state = SavedFleetState(
        fleet=FLEET.name, region=HOME, stuck_in_a_row=before, last_stuck_launched_at=ago(5000)
    )
    made = with_instances(1, 1000, fleet_states=(state,) if before else ())
    (action,) = made.actions
    assert isinstance(action, TerminateInstance)
    assert action.decrement == falls
    said = "nothing asks for another in its place" if falls else "its fleet launches another"
    assert f"still no node: {said}" in action.because
    assert [f.target for f in made.fleets] == [0 if falls else 1]


def test_instance_that_somebody_protects_is_held() -> None:
    """Whoever protects one that does not join wants to look at it, and it was gone."""
    group = make_fleet_settings(provider="asg", auto_scaling_group="workers")
    live = replace(make_fleet(group, 2, id="workers"), name="workers")
    found = [instance(live, "i-0", 1000, protected=True), instance(live, "i-1", 1000)]
    snapshot = make_snapshot(cloud=make_cloud(live, instances=found), **kept_proof(live))
    made = plan(snapshot, make_settings(group))
    assert ended(made) == ["i-1"]
    detail = "its instance is protected from scale-in"
    assert [(h.instance, h.code, h.detail) for h in made.held] == [("i-0", "protected", detail)]


def test_nothing_is_stuck_where_instances_are_not_known() -> None:
    """A denied call would end every instance."""
    assert ended(with_instances(2, 1000, known=False)) == []


def test_instance_of_an_unreadable_node_is_not_stuck() -> None:
    """One malformed object would cost a node with all its pods."""
    other = make_node("n", FLEET, unreadable=True, instance_id=None)
    assert ended(with_instances(1, 1000, other)) == []
    same = make_node("n", FLEET, unreadable=True, instance_id=InstanceId("i-0"))
    assert ended(with_instances(1, 1000, same)) == []


def test_node_without_provider_id_is_known_by_its_private_name() -> None:
    """Kubelets that register no providerID would see their instances ended."""
    live = make_fleet(FLEET, 1)
    named = instance(live, "i-0", 5000, private_dns_name="ip-10-0-0-7.us-west-2.compute.internal")
    node = make_node("ip-10-0-0-7", FLEET, instance_id=None)
    cloud = make_cloud(live, instances=[named])
    snapshot = make_snapshot(node, cloud=cloud, **kept_proof(live))
    assert ended(plan(snapshot, make_settings(FLEET))) == []


@pytest.mark.parametrize(
    ("label", "ready", "ends"),
    [("fleet", True, []), ("fleet", False, ["i-0"]), ("", True, ["i-0"])],
)
def test_nothing_is_stuck_while_a_ready_node_of_a_fleet_is_tied_to_no_instance(
    label: str, ready: bool, ends: list[str]
) -> None:
    """The instance under the pods of a node without a providerID would be ended."""
    live = make_fleet(FLEET, 1)
    named = instance(live, "i-0", 5000, private_dns_name="ip-10-0-0-7.us-west-2.compute.internal")
    node = make_node("worker-7", FLEET if label else None, instance_id=None, ready=ready)
    cloud = make_cloud(live, instances=[named])
    snapshot = make_snapshot(node, cloud=cloud, **kept_proof(live))
    assert ended(plan(snapshot, make_settings(FLEET))) == ends


@pytest.mark.parametrize("state", ["shutting-down", "terminated", "stopped"])
def test_instance_that_is_going_is_not_stuck(state: str) -> None:
    """It would be ended again with every cycle."""
    live = make_fleet(FLEET, 1)
    cloud = make_cloud(live, instances=[instance(live, "i-0", 5000, state=state)])
    snapshot = make_snapshot(cloud=cloud, **kept_proof(live))
    assert ended(plan(snapshot, make_settings(FLEET))) == []


def test_instances_of_other_fleets_are_never_touched() -> None:
    """Somebody else's fleet, or an instance with only the cluster's tag, would be ended."""
    foreign = make_fleet(make_fleet_settings("other", name="foreign"), 1)
    found = [instance(foreign, "i-0", 5000), replace(instance(foreign, "i-1", 5000), fleet_id=None)]
    live = make_fleet(FLEET)
    cloud = make_cloud(live, foreign, instances=found)
    snapshot = make_snapshot(cloud=cloud, **kept_proof(live))
    assert ended(plan(snapshot, make_settings(FLEET))) == []


def test_three_in_a_row_make_the_fleet_unavailable_in_the_same_plan() -> None:
    """A broken image would launch instances for ever, and pods wait for them."""
    other = make_fleet_settings("large", price="0.20")
    live, spare = make_fleet(FLEET, 4), make_fleet(other)
    node = make_node("full", FLEET)
    found = [instance(live, f"i-{i}", 1000 + i) for i in range(3)]
    cloud = make_cloud(
        live, spare, instances=[*found, make_instance(node, live, launched_at=ago(9000))]
    )
    snapshot = make_snapshot(make_pod(), node, full("full", "4"), cloud=cloud)
    made = plan(snapshot, make_settings(FLEET, other))
    assert len(ended(made)) == 3
    assert [p.fleet for p in made.placements] == ["primary-large"]
    (saved,) = made.fleet_states
    assert (saved.stuck_in_a_row, saved.failures) == (3, 1)
    assert saved.unavailable_until == NOW + timedelta(minutes=5)


def remembering(saved: SavedFleetState, *launched_ago: float, joined: float | None = None) -> Plan:
    """The plan of a fleet with a saved, stuck instances, and perhaps a node."""
    node = make_node("ok", FLEET, created_at=ago(joined or 0))
    live = make_fleet(FLEET, len(launched_ago))
    found = [instance(live, f"i-{i}", s) for i, s in enumerate(launched_ago)]
    nodes = [node] if joined is not None else []
    found += [make_instance(n, live, launched_at=ago(joined or 0)) for n in nodes]
    cloud: CloudState = make_cloud(live, instances=found)
    snapshot = make_snapshot(*nodes, cloud=cloud, fleet_states=(saved,), **kept_proof(live))
    return plan(snapshot, make_settings(FLEET))


TWO = SavedFleetState(
    fleet=FLEET.name, region=HOME, stuck_in_a_row=2, last_stuck_launched_at=ago(2000)
)


def test_third_stuck_instance_after_a_restart_counts_on() -> None:
    """A fleet that fails slowly would be asked again and again."""
    (saved,) = remembering(TWO, 1000).fleet_states
    assert saved.stuck_in_a_row == 3
    assert saved.unavailable_until is not None


def test_instance_counted_before_does_not_count_again() -> None:
    """One instance that takes long to end would make its fleet unavailable."""
    assert remembering(TWO, 2000).fleet_states == (TWO,)


def test_node_that_joined_later_ends_the_row() -> None:
    """Three failures in a year would make a fleet unavailable."""
    (saved,) = remembering(TWO, joined=1500).fleet_states
    assert saved.stuck_in_a_row == 0
    (saved,) = remembering(TWO, 1000, joined=1500).fleet_states
    assert (saved.stuck_in_a_row, saved.unavailable_until) == (1, None)


def test_saved_states_of_healthy_fleets_are_kept_as_they_are() -> None:
    """The loop would forget a cool-off as soon as it has written it."""
    cooling = replace(TWO, unavailable_until=NOW + timedelta(minutes=3), failures=2)
    assert remembering(cooling).fleet_states == (cooling,)
