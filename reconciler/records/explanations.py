"""Explanations as JSON: the key `explanations` of a plan, present only on request."""

from typing import Any

import orjson

from reconciler.model.ids import PodKey
from reconciler.model.plan import Placement, Plan
from reconciler.model.text import rfc3339
from reconciler.planner.disruption.node_disruption import Disruption
from reconciler.planner.explain.answers import (
    Explanations,
    FleetAnswer,
    FleetExplanation,
    NodeExplanation,
    PodExplanation,
)
from reconciler.records.plan import action_to_json, fleet_to_json, plan_to_json

Json = dict[str, Any]


def encode_explained_plan(plan: Plan, explanations: Explanations) -> bytes:
    """Return the plan's JSON with the key `explanations`, indented, newline at the end."""
    document = plan_to_json(plan) | {"explanations": explanations_to_json(explanations)}
    options = orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE | orjson.OPT_INDENT_2
    return orjson.dumps(document, option=options)


def encode_explanations(explanations: Explanations) -> bytes:
    """Return the explanations alone, indented, newline at the end."""
    options = orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE | orjson.OPT_INDENT_2
    return orjson.dumps(explanations_to_json(explanations), option=options)


def explanations_to_json(explanations: Explanations) -> Json:
    """Return `{"pods": […], "nodes": […], "fleets": […]}`, each in the order of the questions."""
    return {
        "fleets": [_fleet_size(fleet) for fleet in explanations.fleets],
        "pods": [_pod(pod) for pod in explanations.pods],
        "nodes": [_node(node) for node in explanations.nodes],
    }


def _key(key: PodKey) -> Json:
    return {"namespace": key.namespace, "pod": key.name}


def _pod(pod: PodExplanation) -> Json:
    return _key(pod.pod) | {
        "verdict": pod.verdict,
        "because": pod.because,
        "placement": None if pod.placement is None else _placement(pod.placement),
        "fleets": [_fleet(fleet) for fleet in pod.fleets],
        "nodes": dict(pod.nodes),
        "change": list(pod.change),
    }


def _placement(placement: Placement) -> Json:
    named = {
        "node": placement.node,
        "fleet": placement.fleet,
        "region": placement.region,
        "launching": placement.launching,
        "new_node": placement.new_node,
        "from": placement.moved_from,
    }
    return {name: value for name, value in named.items() if value is not None}


def _fleet(answer: FleetAnswer) -> Json:
    return {
        "fleet": answer.fleet,
        "region": answer.region,
        "code": answer.code,
        "detail": answer.detail,
        "ways": [list(way) for way in answer.ways],
    }


def _fleet_size(fleet: FleetExplanation) -> Json:
    return fleet_to_json(fleet.plan) | {
        "verdict": fleet.verdict,
        "because": fleet.because,
        "hourly_usd": fleet.hourly_usd,
        "pods": fleet.pods,
        "nodes": dict(fleet.nodes),
        "refused": dict(fleet.refused),
    }


def _node(node: NodeExplanation) -> Json:
    return {
        "node": node.node,
        "fleet": node.fleet,
        "verdict": node.verdict,
        "code": node.code,
        "because": node.because,
        "actions": [action_to_json(action) for action in node.actions],
        "pods": [_key(pod) for pod in node.pods],
        "disruption": None if node.disruption is None else _disruption(node.disruption),
        "drift": node.drift,
    }


def _disruption(found: Disruption) -> Json:
    return {
        "reason": found.reason,
        "class": found.kind,
        "stage": found.stage,
        "started": None if found.started is None else rfc3339(found.started),
        "deadline": None if found.deadline is None else rfc3339(found.deadline),
        "failures": found.failures,
        "rests_until": None if found.rests_until is None else rfc3339(found.rests_until),
    }
