"""A plan read back from its JSON, for tools and tests that compare plans.

The JSON does not say everything: pods have no uid, and the fleet id of a terminated
instance stays empty. Writing what was read gives the same bytes.
"""

from datetime import datetime
from typing import Any

import orjson

from reconciler.model.actions import (
    AnnotateNode,
    AnyAction,
    DeleteNode,
    DeletePod,
    EvictPod,
    SetCapacity,
    TaintNode,
    TerminateInstance,
    UntaintNode,
)
from reconciler.model.cluster import Taint
from reconciler.model.errors import InputError
from reconciler.model.ids import FleetId, NodeName, PodKey, Region
from reconciler.model.plan import (
    Cost,
    FleetPlan,
    Held,
    Kept,
    Placement,
    Plan,
    Reason,
    Unplaceable,
)
from reconciler.model.snapshot import Ignored

Json = dict[str, Any]


def decode_plan(body: bytes, home_region: Region, where: str = "plan") -> Plan:
    """Read a plan.

    Args:
        body: What `encode_plan` wrote.
        home_region: The region that placements leave out.
        where: For errors.

    Raises:
        InputError: It is no plan.
    """
    try:
        return _plan(orjson.loads(body), home_region)
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(where, f"is no plan: {error!r}"[:200]) from error


def _plan(found: Json, home: Region) -> Plan:
    return Plan(
        at=datetime.fromisoformat(found["at"]),
        cluster=found["cluster"],
        home_region=home,
        actions=tuple(map(_action, found["actions"])),
        placements=tuple(_placement(each, home) for each in found["placements"]),
        held=tuple(_held(each) for each in found["held"]),
        unplaceable=tuple(
            Unplaceable(
                pod=_pod(each),
                reasons=tuple(Reason(**({"region": home} | reason)) for reason in each["reasons"]),
            )
            for each in found["unplaceable"]
        ),
        ignored=tuple(Ignored(**each) for each in found["ignored"]),
        fleets=tuple(FleetPlan(**each) for each in found["fleets"]),
        cost=Cost(**(found["cost"] | {"unpriced": tuple(found["cost"].get("unpriced", ()))})),
        kept=tuple(Kept(**each) for each in found.get("kept", ())),
    )


def _held(found: Json) -> Held:
    return Held(
        node=found["node"] or NodeName(""), code=found["code"], instance=found.get("instance", "")
    )


def _pod(found: Json) -> PodKey:
    return PodKey(namespace=found["namespace"], name=found["pod"])


def _placement(found: Json, home: Region) -> Placement:
    fleet = found.get("fleet")
    return Placement(
        pod=_pod(found),
        node=found.get("node"),
        fleet=fleet,
        region=found.get("region", home) if fleet is not None else None,
        launching=found.get("launching"),
        new_node=found.get("new_node"),
        moved_from=found.get("from"),
    )


def _action(found: Json) -> AnyAction:
    why = {"policy": found["policy"], "because": found["because"]}
    match found["action"]:
        case "set-capacity":
            return SetCapacity(
                fleet=found["fleet"],
                provider=found["provider"],
                id=FleetId(found["id"]),
                region=Region(found["region"]),
                from_capacity=found["from"],
                to_capacity=found["to"],
                **why,
            )
        case "terminate-instance":
            return TerminateInstance(
                instance=found["instance"],
                node=found["node"],
                fleet=found["fleet"],
                fleet_id=FleetId(""),
                provider="ec2-fleet",
                region=Region(found["region"]),
                decrement=found["decrement"],
                **why,
            )
        case "evict-pod":
            return EvictPod(
                pod=_pod(found), node=found["node"], grace_seconds=found["grace_seconds"], **why
            )
        case "delete-pod":
            return DeletePod(pod=_pod(found), node=found["node"], **why)
        case _:
            return _node_action(found, why)


def _node_action(found: Json, why: Json) -> AnyAction:
    node = found["node"]
    match found["action"]:
        case "taint-node":
            return TaintNode(node=node, taint=Taint(**found["taint"]), **why)
        case "untaint-node":
            return UntaintNode(node=node, key=found["key"], **why)
        case "annotate-node":
            return AnnotateNode(node=node, key=found["key"], value=found["value"], **why)
        case "delete-node":
            return DeleteNode(node=node, **why)
        case unknown:
            raise ValueError(f"unknown action {unknown!r}")
