"""The JSON of a plan exactly as the contract has it: nothing missing, nothing more."""

from typing import Any

Json = dict[str, Any]

TEXT: Json = {"type": "string", "minLength": 1}
ANY_TEXT: Json = {"type": "string"}
COUNT: Json = {"type": "integer", "minimum": 0}
MONEY: Json = {"type": "number", "minimum": 0}
TIME: Json = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$"}
POLICY: Json = {
    "enum": [
        "scale-up",
        "min-capacity",
        "max-capacity",
        "scale-in",
        "consolidation",
        "spot-reschedule",
        "deschedule",
        "interruption",
        "rolling-update",
        "expiry",
        "spot-return",
        "stuck-instance",
        "overflow",
    ]
}
UNPLACEABLE_CODE: Json = {
    "type": "string",
    "pattern": (
        r"^(insufficient-\S+|node-selector|node-affinity|taint|pod-affinity|pod-anti-affinity|"
        r"topology-spread|host-port|volume-zone|volume-limit|volume-binding|volume-in-use|zone|"
        r"max-capacity|max-cost|raise-limit|higher-priority|no-progress|no-sector|fleet-unavailable)$"
    ),
}


def closed(required: Json, optional: Json | None = None) -> Json:
    """An object with exactly these keys."""
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": sorted(required),
        "additionalProperties": False,
    }


def listed(item: Json) -> Json:
    """A list of such items."""
    return {"type": "array", "items": item}


def action(name: str, optional: Json | None = None, **fields: Json) -> Json:
    """One kind of action."""
    return closed(
        {"action": {"const": name}, "policy": POLICY, "because": TEXT, **fields}, optional
    )


POD: Json = {"namespace": TEXT, "pod": TEXT}
PROVIDER: Json = {"enum": ["ec2-fleet", "asg"]}
TAINT = closed(
    {
        "key": TEXT,
        "value": ANY_TEXT,
        "effect": {"enum": ["NoSchedule", "PreferNoSchedule", "NoExecute"]},
    }
)
ACTIONS: Json = {
    "oneOf": [
        action(
            "set-capacity",
            {"places_taken": TEXT},
            **{
                "fleet": TEXT,
                "provider": PROVIDER,
                "id": ANY_TEXT,
                "region": TEXT,
                "from": COUNT,
                "to": COUNT,
            },
        ),
        action("taint-node", node=TEXT, taint=TAINT),
        action("untaint-node", node=TEXT, key=TEXT),
        action("annotate-node", node=TEXT, key=TEXT, value={"type": ["string", "null"]}),
        action("evict-pod", **POD, node=TEXT, grace_seconds=COUNT),
        action("delete-pod", **POD, node=TEXT, grace_seconds=COUNT),
        action(
            "terminate-instance",
            instance=TEXT,
            node={"type": ["string", "null"]},
            fleet=TEXT,
            region=TEXT,
            decrement={"type": "boolean"},
            precondition={"enum": ["empty", "not-ready", "never-joined", "orphan"]},
        ),
        action("delete-node", node=TEXT),
    ]
}
PLACEMENT: Json = {
    "oneOf": [
        closed({**POD, "node": TEXT}, {"from": TEXT}),
        closed({**POD, "fleet": TEXT, "new_node": COUNT}, {"region": TEXT, "from": TEXT}),
        closed({**POD, "fleet": TEXT, "launching": COUNT}, {"region": TEXT, "from": TEXT}),
    ]
}
IGNORED: Json = {
    "oneOf": [
        closed(
            {
                **POD,
                "code": {
                    "enum": [
                        "daemonset",
                        "mirror",
                        "gated",
                        "deleting",
                        "finished",
                        "other-scheduler",
                        "kube-system",
                        "no-sector",
                    ]
                },
            }
        ),
        closed(
            {"code": {"const": "unreadable"}, "kind": ANY_TEXT, "name": ANY_TEXT},
            {"namespace": TEXT, "pod": TEXT, "detail": TEXT},
        ),
        closed(
            {
                "code": {"const": "unused-kind"},
                "kind": TEXT,
                "count": {"type": "integer", "minimum": 1},
            }
        ),
    ]
}
FLEET = closed(
    {
        "fleet": TEXT,
        "region": TEXT,
        "current": COUNT,
        "joined": COUNT,
        "launching": COUNT,
        "target": COUNT,
        "min": COUNT,
        "max": {"type": ["integer", "null"], "minimum": 0},
        "state": TEXT,
    },
    {"az_rebalance": {"const": True}},
)
REASON = closed({"fleet": ANY_TEXT, "code": UNPLACEABLE_CODE, "detail": TEXT}, {"region": TEXT})
COST = closed(
    {
        "hourly_usd_before": MONEY,
        "hourly_usd_after": MONEY,
        "hourly_usd_lower_bound": MONEY,
        "gap": {"type": "number", "minimum": 0, "maximum": 1},
    },
    {
        "unpriced": listed(TEXT),
        "prices": closed({"region": TEXT, "as_of": {"type": ["string", "null"]}}),
    },
)
HELD_NODE = closed(
    {"node": TEXT, "code": {"enum": ["safety-stop", "outage", "stuck-cap"]}},
    {"detail": TEXT},
)
HELD_INSTANCE = closed(
    {
        "node": {"const": None},
        "instance": TEXT,
        "code": {
            "enum": [
                "safety-stop",
                "unproven-cluster",
                "stuck-cap",
                "clock-skew",
                "termination-protected",
                "unlisted-node",
            ]
        },
    },
    {"detail": TEXT},
)
BINDING = closed(
    {
        "verdict": {"enum": ["proven", "previously-proven", "pending", "unproven"]},
        "because": TEXT,
        "cluster_uid": {"type": ["string", "null"]},
        "removals_allowed": {"type": "boolean"},
    }
)
PLAN = closed(
    {
        "at": TIME,
        "cluster": TEXT,
        "actions": listed(ACTIONS),
        "placements": listed(PLACEMENT),
        "held": listed({"oneOf": [HELD_NODE, HELD_INSTANCE]}),
        "unplaceable": listed(closed({**POD, "reasons": {**listed(REASON), "minItems": 1}})),
        "ignored": listed(IGNORED),
        "fleets": listed(FLEET),
        "cost": COST,
        "binding": BINDING,
        "clock_skew_seconds": {"type": "integer"},
    }
)
