"""Encodes a plan as the JSON that users and CI read: the same plan gives the same bytes."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Final, assert_never

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
from reconciler.model.interning import InternTable
from reconciler.model.plan import Cost, FleetPlan, FleetUpdate, Held, Placement, Plan
from reconciler.model.snapshot import Ignored
from reconciler.model.unplaceable import Reason, Unplaceable
from reconciler.records.binding import binding_to_json
from reconciler.records.times import rfc3339_exact

Json = dict[str, Any]

_USD_DIGITS = 6
"""Prices have at most four decimals; more digits would only show rounding errors of sums."""
PART_BYTES: Final = 1 << 16
"""About how long one part of a plan is that is encoded part by part."""
_FRAGMENTS_MAX: Final = 4_096
"""How many KiB of encoded reasons are remembered while a plan is encoded, twice over."""


def encode_plan(plan: Plan, *, indent: bool = False, kept: bool = False) -> bytes:
    """Write a plan: keys sorted, UTF-8, one line unless `indent`, newline at the end.

    Args:
        plan: The plan.
        indent: Whether to indent for people: one value per line.
        kept: Whether to add `kept`, why each node stays.
    """
    if not indent:
        return b"".join(encoded_parts(plan, kept=kept))
    options = orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE | orjson.OPT_INDENT_2
    return orjson.dumps(plan_to_json(plan, kept=kept), option=options)


def encoded_parts(plan: Plan, *, kept: bool = False) -> Iterator[bytes]:
    """Write a plan as `encode_plan` does, part by part.

    A plan of ten thousand pods that none of 300 fleets can take is 400 MB of JSON. No more than a
    few MiB of it exist at once.
    """
    lists, others = _lists(plan, _encoded_reasons(plan.home_region)), _others(plan, kept=kept)
    start = b"{"
    for key in sorted({*lists, *others}):
        yield start + orjson.dumps(key) + b":"
        if key in lists:
            yield from _array(lists[key])
        else:
            yield orjson.dumps(others[key], option=orjson.OPT_SORT_KEYS)
        start = b","
    yield b"}\n"


def _array(items: Iterable[Json]) -> Iterator[bytes]:
    part = bytearray(b"[")
    for number, item in enumerate(items):
        if number:
            part += b","
        part += orjson.dumps(item, option=orjson.OPT_SORT_KEYS)
        if len(part) >= PART_BYTES:
            yield bytes(part)
            part.clear()
    yield bytes(part) + b"]"


def plan_to_json(plan: Plan, *, kept: bool = False, listed_max: int | None = None) -> Json:
    """Return a plan as `reconciler plan --output json` prints it: plain dicts and lists.

    Args:
        plan: The plan.
        kept: Whether to add `kept`, why each node stays.
        listed_max: How many actions, placements, held nodes, unplaceable pods and ignored objects
            there are at most; None: all of them.
    """
    lists = _lists(plan, _listed_reasons(plan.home_region))
    cut = {key: list(islice(items, listed_max)) for key, items in lists.items()}
    return cut | _others(plan, kept=kept)


_Reasons = Callable[[tuple[Reason, ...]], Any]
"""Makes what the plan says about a pod's reasons, once for all pods that share them."""


def _lists(plan: Plan, reasons: _Reasons) -> dict[str, Iterable[Json]]:
    """Return the lists of a plan that are as long as the cluster is large, nothing built yet."""
    home = plan.home_region
    return {
        "actions": map(action_to_json, plan.actions),
        "placements": (_placement(placement, home) for placement in plan.placements),
        "held": map(_held, plan.held),
        "unplaceable": (_unplaceable(unplaceable, reasons) for unplaceable in plan.unplaceable),
        "ignored": map(_ignored, plan.ignored),
    }


def _others(plan: Plan, *, kept: bool) -> Json:
    """Return the parts of a plan other than its `_lists`."""
    result: Json = {
        "at": rfc3339_exact(plan.at),
        "cluster": plan.cluster,
        "fleets": [fleet_to_json(fleet) for fleet in plan.fleets],
        "cost": _cost(plan.cost),
        "binding": binding_to_json(plan.binding),
        "clock_skew_seconds": plan.clock_skew_seconds,
    }
    if plan.stand_ins:
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
            for each in plan.stand_ins
        ]
    if plan.headroom:
        result["headroom"] = [
            {
                "sector": headroom_plan.sector,
                "asked": headroom_plan.asked,
                "pieces": headroom_plan.pieces,
                "missing": headroom_plan.missing,
                "because": headroom_plan.because,
            }
            for headroom_plan in plan.headroom
        ]
    if plan.interrupted_pools:
        result["interrupted_pools"] = [
            {
                "instance_type": interrupted_pool.instance_type,
                "zone": interrupted_pool.zone,
                "at": rfc3339_exact(interrupted_pool.at),
            }
            for interrupted_pool in plan.interrupted_pools
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


def _unplaceable(unplaceable: Unplaceable, reasons: _Reasons) -> Json:
    return _pod(unplaceable.pod) | {"reasons": reasons(unplaceable.reasons)}


def _reasons(every: tuple[Reason, ...], home: Region) -> list[Json]:
    return [
        {"fleet": reason.fleet, "code": reason.code, "detail": reason.detail}
        | _outside(reason.region, home)
        for reason in every
    ]


def _listed_reasons(home: Region) -> _Reasons:
    """Return reasons as one list for all pods that share them."""
    known: dict[int, list[Json]] = {}

    def listed(every: tuple[Reason, ...]) -> list[Json]:
        found = known.get(id(every))
        if found is None:
            found = known[id(every)] = _reasons(every, home)
        return found

    return listed


def _encoded_reasons(home: Region) -> _Reasons:
    """Return reasons as JSON, which is remembered for as many as fit a few MiB."""
    known: InternTable[int, orjson.Fragment] = InternTable(_FRAGMENTS_MAX)

    def encoded(every: tuple[Reason, ...]) -> orjson.Fragment:
        found = known.get(id(every))
        if found is None:
            text = orjson.dumps(_reasons(every, home), option=orjson.OPT_SORT_KEYS)
            found = known.put(id(every), orjson.Fragment(text), weight=1 + len(text) // 1024)
        return found

    return encoded


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
