"""Plans as JSON: the shape that users and CI read, byte for byte."""

import json
from dataclasses import replace
from datetime import UTC, datetime

from reconciler.model.actions import (
    AnnotateNode,
    DeleteNode,
    DeletePod,
    EvictPod,
    SetCapacity,
    TaintNode,
    TerminateInstance,
    UntaintNode,
)
from reconciler.model.cluster import Taint
from reconciler.model.ids import FleetId, InstanceId, NodeName, PodKey, Region
from reconciler.model.plan import Cost, FleetPlan, Held, Kept, Placement, Plan
from reconciler.model.snapshot import Ignored
from reconciler.model.unplaceable import Reason, Unplaceable
from reconciler.records.plan import action_to_json, encode_plan

HOME, AWAY = Region("us-west-2"), Region("us-east-1")
NODE = NodeName("ip-10-0-0-7")
POD = PodKey(namespace="web", name="api-1", uid="u")

PLAN = Plan(
    at=datetime(2026, 1, 31, 12, tzinfo=UTC),
    cluster="analytics",
    home_region=HOME,
    actions=(
        SetCapacity(
            policy="scale-up",
            because="b",
            fleet="primary-small",
            provider="ec2-fleet",
            id=FleetId("fleet-1"),
            region=HOME,
            from_capacity=2,
            to_capacity=5,
        ),
        TaintNode(
            policy="scale-in",
            because="b",
            node=NODE,
            taint=Taint(key="fleet-reconciler.io/draining", value="scale-in", effect="NoSchedule"),
        ),
        UntaintNode(policy="scale-in", because="b", node=NODE, key="k"),
        AnnotateNode(policy="scale-in", because="b", node=NODE, key="k", value=None),
        EvictPod(policy="spot-reschedule", because="b", pod=POD, node=NODE, grace_seconds=30),
        DeletePod(policy="interruption", because="b", pod=POD, node=NODE, grace_seconds=20),
        TerminateInstance(
            policy="stuck-instance",
            because="b",
            instance=InstanceId("i-1"),
            node=None,
            fleet="primary-small",
            fleet_id=FleetId("fleet-1"),
            provider="ec2-fleet",
            region=HOME,
            decrement=False,
            precondition="not-ready",
        ),
        DeleteNode(policy="interruption", because="b", node=NODE),
    ),
    placements=(
        Placement(pod=POD, node=NODE, moved_from=NodeName("ip-10-0-0-9")),
        Placement(pod=POD, fleet="primary-small", region=HOME, new_node=0),
        Placement(pod=POD, fleet="primary-small", region=AWAY, launching=1),
    ),
    held=(Held(node=NODE, code="safety-stop"),),
    unplaceable=(
        Unplaceable(
            pod=POD,
            reasons=(
                Reason(fleet="f", region=HOME, code="insufficient-memory", detail="d"),
                Reason(fleet="f", region=AWAY, code="zone", detail="d"),
            ),
        ),
    ),
    ignored=(
        Ignored(code="daemonset", namespace="kube-system", pod="x"),
        Ignored(code="unreadable", kind="Pod", namespace="web", name="y"),
        Ignored(code="unused-kind", kind="Secret", count=2),
    ),
    fleets=(
        FleetPlan(
            fleet="primary-small",
            region=HOME,
            current=2,
            joined=2,
            launching=0,
            target=5,
            min=0,
            max=None,
            state="active",
        ),
    ),
    cost=Cost(
        hourly_usd_before=0.504, hourly_usd_after=0.1 + 0.2, hourly_usd_lower_bound=0.3, gap=0.0
    ),
    kept=(Kept(node=NODE, code="in-use", detail="d"),),
)


def test_plan_has_the_shape_of_the_contract() -> None:
    """Whoever parses plans in CI would break on any other field or name."""
    found = json.loads(encode_plan(PLAN))
    why = {"because": "b"}
    assert found["at"] == "2026-01-31T12:00:00Z"
    assert found["actions"] == [
        {
            "action": "set-capacity",
            "fleet": "primary-small",
            "provider": "ec2-fleet",
            "id": "fleet-1",
            "region": "us-west-2",
            "from": 2,
            "to": 5,
            "policy": "scale-up",
            **why,
        },
        {
            "action": "taint-node",
            "node": NODE,
            "taint": {
                "key": "fleet-reconciler.io/draining",
                "value": "scale-in",
                "effect": "NoSchedule",
            },
            "policy": "scale-in",
            **why,
        },
        {"action": "untaint-node", "node": NODE, "key": "k", "policy": "scale-in", **why},
        {
            "action": "annotate-node",
            "node": NODE,
            "key": "k",
            "value": None,
            "policy": "scale-in",
            **why,
        },
        {
            "action": "evict-pod",
            "namespace": "web",
            "pod": "api-1",
            "node": NODE,
            "grace_seconds": 30,
            "policy": "spot-reschedule",
            **why,
        },
        {
            "action": "delete-pod",
            "namespace": "web",
            "pod": "api-1",
            "node": NODE,
            "grace_seconds": 20,
            "policy": "interruption",
            **why,
        },
        {
            "action": "terminate-instance",
            "instance": "i-1",
            "node": None,
            "fleet": "primary-small",
            "region": "us-west-2",
            "decrement": False,
            "precondition": "not-ready",
            "policy": "stuck-instance",
            **why,
        },
        {"action": "delete-node", "node": NODE, "policy": "interruption", **why},
    ]
    assert found["placements"] == [
        {"namespace": "web", "pod": "api-1", "from": "ip-10-0-0-9", "node": NODE},
        {"namespace": "web", "pod": "api-1", "fleet": "primary-small", "new_node": 0},
        {
            "namespace": "web",
            "pod": "api-1",
            "fleet": "primary-small",
            "launching": 1,
            "region": "us-east-1",
        },
    ]
    assert found["unplaceable"][0]["reasons"] == [
        {"fleet": "f", "code": "insufficient-memory", "detail": "d"},
        {"fleet": "f", "code": "zone", "detail": "d", "region": "us-east-1"},
    ]
    assert found["ignored"] == [
        {"namespace": "kube-system", "pod": "x", "code": "daemonset"},
        {"code": "unreadable", "kind": "Pod", "namespace": "web", "name": "y"},
        {"code": "unused-kind", "kind": "Secret", "count": 2},
    ]
    assert found["fleets"][0]["max"] is None
    assert found["cost"] == {
        "hourly_usd_before": 0.504,
        "hourly_usd_after": 0.3,
        "hourly_usd_lower_bound": 0.3,
        "gap": 0.0,
    }
    assert "kept" not in found
    assert json.loads(encode_plan(PLAN, kept=True))["kept"][0]["code"] == "in-use"


def test_keys_are_sorted_and_bytes_are_stable() -> None:
    """Two equal plans that differ in bytes look like a change in CI."""
    text = encode_plan(PLAN)
    assert text == encode_plan(PLAN)
    assert (
        text
        == (json.dumps(json.loads(text), sort_keys=True, separators=(",", ":")) + "\n").encode()
    )


def test_raise_names_the_pods_that_took_the_places() -> None:
    """A plan that is kept must say why a purchase was repeated; other plans have no such key."""
    first = PLAN.actions[0]
    assert isinstance(first, SetCapacity)
    assert "places_taken" not in action_to_json(first)
    again = replace(first, places_taken="web/api took the place")
    assert action_to_json(again)["places_taken"] == "web/api took the place"
