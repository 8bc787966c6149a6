"""Encodes a plan as the JSON that users and CI read: the same plan gives the same bytes."""

from typing import Any, assert_never

import orjson

from reconciler.model.actions import (
    Action,
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
from reconciler.model.ids import PodKey, Region
from reconciler.model.plan import (
    Cost,
    FleetPlan,
    FleetUpdate,
    Held,
    Placement,
    Plan,
    Unplaceable,
)
from reconciler.model.snapshot import Ignored
from reconciler.records.binding import binding_to_json
from reconciler.records.times import rfc3339_exact

Json = dict[str, Any]

_USD_DIGITS = 6
"""Prices have at most four decimals; more digits would only show rounding errors of sums."""


def encode_plan(plan: Plan, *, indent: bool = False, kept: bool = False) -> bytes:
    """Write a plan: keys sorted, UTF-8, one line unless `indent`, newline at the end.

    Args:
        plan: The plan.
        indent: Whether to indent for people: one value per line.
        kept: Whether to add `kept`, why each node stays.
    """
    options = orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
    return orjson.dumps(
        plan_to_json(plan, kept=kept), option=options | (orjson.OPT_INDENT_2 if indent else 0)
    )


def plan_to_json(plan: Plan, *, kept: bool = False) -> Json:
    """Return a plan as `reconciler plan --output json` prints it: plain dicts and lists."""
    home = plan.home_region
    result: Json = {
        "at": rfc3339_exact(plan.at),
        "cluster": plan.cluster,
        "actions": [action_to_json(each) for each in plan.actions],
        "placements": [_placement(each, home) for each in plan.placements],
        "held": [_held(each) for each in plan.held],
        "unplaceable": [_unplaceable(each, home) for each in plan.unplaceable],
        "ignored": [_ignored(each) for each in plan.ignored],
        "fleets": [fleet_to_json(each) for each in plan.fleets],
        "cost": _cost(plan.cost),
        "binding": binding_to_json(plan.binding),
        "clock_skew_seconds": plan.clock_skew_seconds,
    }
    if plan.fallbacks:
        result["fallbacks"] = [
            {
                "fleet": each.fleet,
                "region": each.region,
                "from": each.instead_of,
                "nodes": each.nodes,
                "extra_hourly_usd": _rounded(each.extra_hourly_usd),
                "going_back": each.going_back,
                "waits": each.waits,
            }
            for each in plan.fallbacks
        ]
    if plan.headroom:
        result["headroom"] = [
            {
                "sector": each.sector,
                "asked": each.asked,
                "pieces": each.pieces,
                "missing": each.missing,
                "because": each.because,
            }
            for each in plan.headroom
        ]
    if plan.interrupted_pools:
        result["interrupted_pools"] = [
            {"instance_type": each.instance_type, "zone": each.zone, "at": rfc3339_exact(each.at)}
            for each in plan.interrupted_pools
        ]
    if kept:
        result["kept"] = [
            {"node": each.node, "code": each.code, "detail": each.detail} for each in plan.kept
        ]
    return result


def action_to_json(action: AnyAction) -> Json:
    """Return one action with exactly the fields of the contract."""
    return _specific(action) | _common(action)


def _common(action: Action) -> Json:
    return {"policy": action.policy, "because": action.because}


def _specific(action: AnyAction) -> Json:
    match action:
        case SetCapacity():
            return {
                "action": "set-capacity",
                "fleet": action.fleet,
                "provider": action.provider,
                "id": action.id,
                "region": action.region,
                "from": action.from_capacity,
                "to": action.to_capacity,
            } | ({"places_taken": action.places_taken} if action.places_taken else {})
        case TerminateInstance():
            return {
                "action": "terminate-instance",
                "instance": action.instance,
                "node": action.node,
                "fleet": action.fleet,
                "region": action.region,
                "decrement": action.decrement,
                "precondition": action.precondition,
            }
        case EvictPod():
            pod = _pod(action.pod) | {"node": action.node}
            return pod | {"action": "evict-pod", "grace_seconds": action.grace_seconds}
        case DeletePod():
            pod = _pod(action.pod) | {"node": action.node}
            return pod | {"action": "delete-pod", "grace_seconds": action.grace_seconds}
        case _:
            return _of_node(action)


def _of_node(action: TaintNode | UntaintNode | AnnotateNode | DeleteNode) -> Json:
    match action:
        case TaintNode(taint=taint):
            parts = {"key": taint.key, "value": taint.value, "effect": taint.effect}
            return {"action": "taint-node", "node": action.node, "taint": parts}
        case UntaintNode():
            return {"action": "untaint-node", "node": action.node, "key": action.key}
        case AnnotateNode():
            return {
                "action": "annotate-node",
                "node": action.node,
                "key": action.key,
                "value": action.value,
            }
        case DeleteNode():
            return {"action": "delete-node", "node": action.node}
        case _ as never:
            assert_never(never)


def _pod(key: PodKey) -> Json:
    return {"namespace": key.namespace, "pod": key.name}


def _placement(placement: Placement, home: Region) -> Json:
    result = _pod(placement.pod)
    if placement.moved_from is not None:
        result["from"] = placement.moved_from
    if placement.node is not None:
        return result | {"node": placement.node}
    result["fleet"] = placement.fleet
    if placement.launching is not None:
        result["launching"] = placement.launching
    else:
        result["new_node"] = placement.new_node
    return result | _outside(placement.region, home)


def _outside(region: Region | None, home: Region) -> Json:
    return {"region": region} if region and region != home else {}


def _held(held: Held) -> Json:
    """Return a held node; an instance that never joined has no node."""
    detail = {"detail": held.detail} if held.detail else {}
    if held.node:
        return {"node": held.node, "code": held.code, **detail}
    return {"node": None, "instance": held.instance, "code": held.code, **detail}


def _unplaceable(unplaceable: Unplaceable, home: Region) -> Json:
    reasons = [
        {"fleet": each.fleet, "code": each.code, "detail": each.detail}
        | _outside(each.region, home)
        for each in unplaceable.reasons
    ]
    return _pod(unplaceable.pod) | {"reasons": reasons}


def _ignored(ignored: Ignored) -> Json:
    """Return only what is known; an unreadable object always has its kind and name."""
    fields: Json = {
        "namespace": ignored.namespace,
        "pod": ignored.pod,
        "kind": ignored.kind,
        "name": ignored.name,
        "count": ignored.count,
        "detail": ignored.detail,
    }
    always = {"kind", "name"} if ignored.code == "unreadable" else set()
    kept = {key: value for key, value in fields.items() if value or key in always}
    return kept | {"code": ignored.code}


def fleet_to_json(fleet: FleetPlan) -> Json:
    """Return one fleet of the plan."""
    removal = {"removal": fleet.removal} if fleet.removal else {}
    return {
        "fleet": fleet.fleet,
        "region": fleet.region,
        "current": fleet.current,
        "joined": fleet.joined,
        "launching": fleet.launching,
        "target": fleet.target,
        "min": fleet.min,
        "max": fleet.max,
        "state": fleet.state,
        **removal,
        **({"az_rebalance": True} if fleet.rebalances_zones else {}),
        **({"rolling_update": _update(fleet.update)} if fleet.update else {}),
    }


def _update(update: FleetUpdate) -> Json:
    return {
        "version": update.version,
        "state": update.state,
        "because": update.because,
        "old": update.old,
        "new": update.new,
    }


def _cost(cost: Cost) -> Json:
    result: Json = {
        "hourly_usd_before": _rounded(cost.hourly_usd_before),
        "hourly_usd_after": _rounded(cost.hourly_usd_after),
        "hourly_usd_lower_bound": _rounded(cost.hourly_usd_lower_bound),
        "gap": _rounded(cost.gap),
    }
    if cost.prices is not None:
        result["prices"] = {"region": cost.prices.region, "as_of": cost.prices.as_of or None}
    if cost.unpriced:
        result["unpriced"] = list(cost.unpriced)
    return result


def _rounded(number: float) -> float:
    return round(float(number), _USD_DIGITS) + 0.0  # no negative zero
