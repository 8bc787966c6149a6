"""What page and JSON derive from one plan and its snapshot, computed once per plan."""

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from reconciler.loops.reason_words import refusal_in_words, usual_remedy, without_later_regions
from reconciler.loops.workloads import Pending, Workload, pending_by_workload
from reconciler.model.plan import FleetPlan, Plan
from reconciler.planner.explain.answers import Changes
from reconciler.records.plan import fleet_to_json
from reconciler.records.times import rfc3339_exact
from reconciler.web.next_steps import NextStep, next_steps
from reconciler.web.nodes import NodeRow, node_rows
from reconciler.web.view import View

Json = dict[str, Any]

WORKLOADS_LISTED_MAX = 200
REFUSALS_LISTED_MAX = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetRow:
    """One fleet: actual, requested and wanted nodes, and what it costs."""

    plan: FleetPlan
    requested: int
    """EC2's target now; it differs from the plan's while EC2 has not accepted the change."""
    cool_off_until: datetime | None
    hourly_usd: float
    """The price of its requested nodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """One plan in a form for people."""

    workloads: tuple[Pending, ...] = ()
    nodes: tuple[NodeRow, ...] = ()


class Overviews:
    """Caches the overview of the last plan; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: tuple[Plan, Overview] | None = None

    def of(self, view: View) -> Overview:
        """Return the overview of the view's plan."""
        plan, snapshot = view.plan, view.snapshot
        if plan is None or snapshot is None:
            return Overview()
        with self._lock:
            if self._known is None or self._known[0] is not plan:
                workloads = pending_by_workload(snapshot, plan)
                made = Overview(workloads=workloads, nodes=node_rows(snapshot, plan))
                self._known = (plan, made)
            return self._known[1]


def fleet_rows(view: View) -> tuple[FleetRow, ...]:
    """Return the fleets of the last plan, with what EC2 has accepted since."""
    plan = view.plan
    if plan is None:
        return ()
    rests = {(m.fleet, m.region): m.unavailable_until for m in plan.fleet_states}
    rows = []
    for fleet in plan.fleets:
        place = (fleet.fleet, fleet.region)
        requested = view.requested.get(place, fleet.current)
        until = rests.get(place)
        rows.append(
            FleetRow(
                plan=fleet,
                requested=requested,
                cool_off_until=until if until is not None and until > plan.at else None,
                hourly_usd=round(requested * fleet.node_usd_per_hour, 6),
            )
        )
    return tuple(rows)


def overview_json(view: View, overview: Overview, remedies: Mapping[Workload, Changes]) -> Json:
    """Return what `/api/status` has in addition to the plan."""
    listed = overview.workloads[:WORKLOADS_LISTED_MAX]
    verdicts = Counter(row.verdict for row in overview.nodes)
    return {
        "workloads": [workload_json(each, remedies) for each in listed],
        "workloads_total": len(overview.workloads),
        "fleets": [_fleet_json(row) for row in fleet_rows(view)],
        "nodes": {"total": len(overview.nodes), "by_verdict": dict(sorted(verdicts.items()))},
        "next": [_step_json(step) for step in next_steps(view)],
    }


def workload_json(pending: Pending, remedies: Mapping[Workload, Changes]) -> Json:
    """Return one workload whose pods wait."""
    return {
        "namespace": pending.workload.namespace,
        "kind": pending.workload.kind,
        "name": pending.workload.name,
        "pods": pending.pods,
        "oldest_at": None if pending.oldest_at is None else rfc3339_exact(pending.oldest_at),
        "state": pending.state,
        "states": dict(sorted(pending.states.items())),
        "fleets": dict(sorted(pending.fleets.items())),
        "because": because(pending),
        "remedy": remedy(pending, remedies),
        "example": None if pending.example is None else str(pending.example),
        "reasons": [
            {
                "code": refusal.code,
                "detail": refusal.detail,
                "pods": refusal.pods,
                "fleets": [{"fleet": fleet, "region": region} for fleet, region in refusal.fleets],
            }
            for refusal in pending.refusals[:REFUSALS_LISTED_MAX]
        ],
    }


def because(pending: Pending) -> str:
    """Return in words why the pods of a workload wait."""
    state = pending.state
    if state == "unplaceable":
        words = dict.fromkeys(refusal_in_words(e.code, e.kind) for e in pending.refusals)
        return "; ".join(list(words)[:REFUSALS_LISTED_MAX])
    named = ", ".join(fleet for fleet, _ in pending.fleets.most_common(3))
    if state == "new-node":
        return f"waits for new nodes of {named}"
    if state == "launching":
        return f"waits for nodes of {named} that are launching"
    return "fits on nodes that exist: kube-scheduler binds it"


def remedy(pending: Pending, remedies: Mapping[Workload, Changes]) -> str:
    """Return the smallest tested change that helps; until one is tested, what usually helps."""
    if not pending.refusals:
        return ""
    if pending.workload in remedies:
        return " and ".join(remedies[pending.workload]) or "nothing that was tried would help"
    first = without_later_regions(pending.refusals)[0]
    return usual_remedy(first.code, first.kind) or f"reconciler explain pod {pending.example}"


def _fleet_json(row: FleetRow) -> Json:
    until = row.cool_off_until
    return fleet_to_json(row.plan) | {
        "requested": row.requested,
        "wanted": row.plan.target,
        "unavailable": row.plan.unavailable,
        "cool_off_until": None if until is None else rfc3339_exact(until),
        "hourly_usd": row.hourly_usd,
        "node_usd_per_hour": row.plan.node_usd_per_hour,
    }


def _step_json(step: NextStep) -> Json:
    at = None if step.at is None else rfc3339_exact(step.at)
    return {"at": at, "what": step.what, "why": step.why}
