"""The status page: one HTML document, rendered here from `templates/status`.

It works without its script, which only fetches the page again in place. Style and script are ours,
and the policy that is sent along allows nothing else.
"""

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Final

from jinja2 import Environment, StrictUndefined, Template

from reconciler.gitops.rendering.assets import read_template
from reconciler.gitops.repository.status import STAGES
from reconciler.loops.workloads import Pending, Workload
from reconciler.model.text import counted_noun, duration, left_alone
from reconciler.planner.explain.answers import Changes
from reconciler.records.binding import binding_to_json, verdict_line
from reconciler.web.board import StatusBoard
from reconciler.web.history import KINDS
from reconciler.web.listing import (
    Page,
    Query,
    page_of,
    shown_decisions,
    shown_fleets,
    shown_nodes,
    shown_text,
    shown_workloads,
)
from reconciler.web.next_steps import next_steps
from reconciler.web.overview import Overview, because, fleet_rows, remedy
from reconciler.web.plots import HEIGHT, WIDTH, plots_of
from reconciler.web.status import pending_pods
from reconciler.web.verdict import verdict_of

REFRESH_SECONDS: Final = 5
NOTHING: Final = "-"
"""Shown where a figure is not known."""
WORKLOAD_ROWS: Final = 12
ROWS: Final = 25
FLEET_ROWS: Final = 50
CAUSES_MAX: Final = 20
WORDS: Final = {
    "unplaceable": "no fleet can run it",
    "new-node": "new nodes",
    "launching": "nodes launching",
    "existing-node": "fits now",
}
"""What pending pods wait for, as a label."""


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def _assets() -> tuple[Template, str, str]:
    """Return the template, the style sheet and the script."""
    environment = Environment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=True
    )
    environment.filters |= {
        "usd": lambda value: f"{value:,.2f}",
        "utc": lambda at: f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}",
        "clock": lambda at: f"{at.astimezone(UTC):%H:%M:%S}",
        "counted": lambda count, noun: f"{count:,}{counted_noun(count, noun)[len(str(count)) :]}",
        "percent": lambda share: NOTHING if share is None else f"{share:.0%}",
        "whole": lambda value: f"{value:,}",
        "cut": shown_text,
    }
    template = environment.from_string(read_template("status/page.html.j2"))
    return template, read_template("status/style.css"), read_template("status/script.js")


@cache
def policy() -> str:
    """Return the Content-Security-Policy: exactly this style sheet and script, nothing else."""
    _, style, script = _assets()
    return (
        f"default-src 'none'; style-src 'sha256-{_digest(style)}'; "
        f"script-src 'sha256-{_digest(script)}'; connect-src 'self'; base-uri 'none'; "
        "form-action 'self'; frame-ancestors 'none'"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSource:
    """Everything that the page is made from."""

    board: StatusBoard
    overview: Overview
    remedies: Mapping[Workload, Changes]
    now: datetime


def page(source: PageSource, query: Query) -> bytes:
    """Return the page.

    Args:
        source: The data to show.
        query: Filters and pages of the long lists.
    """
    template, style, script = _assets()
    values = _values(source, query) | {"style": style, "script": script}
    return template.render(values).encode()


def listed_workloads(overview: Overview, query: Query) -> Page[Pending]:
    """Return the workloads that the page lists."""
    found = shown_workloads(overview.workloads, query)
    return page_of(found, query.workload_page, WORKLOAD_ROWS)


def _values(source: PageSource, query: Query) -> dict[str, Any]:
    board, view, overview = source.board, source.board.view, source.overview
    verdict = verdict_of(board)
    fleets, nodes = fleet_rows(view), shown_nodes(overview.nodes, query)
    decisions = shown_decisions(board.history.decisions, query)

    def age(at: datetime | None) -> str:
        return NOTHING if at is None else duration(max(source.now - at, timedelta()))

    return {
        "view": view,
        "verdict": verdict,
        "causes": verdict.causes[:CAUSES_MAX],
        "more_causes": max(0, len(verdict.causes) - CAUSES_MAX),
        "role": role_of(source),
        "ready": board.is_ready(),
        "success_age": age(view.succeeded_at),
        "binding": None if view.plan is None else verdict_line(binding_to_json(view.plan.binding)),
        "now": source.now,
        "age": age,
        "tiles": _tiles(source),
        "plots": plots_of(board.history.samples),
        "plot_width": WIDTH,
        "plot_height": HEIGHT,
        "workloads": listed_workloads(overview, query),
        "workloads_total": len(overview.workloads),
        "pods_pending": 0 if view.plan is None else pending_pods(view.plan),
        "because": because,
        "remedy": lambda pending: remedy(pending, source.remedies),
        "tested": source.remedies,
        "without_sector": view.plan.pods_without_sector if view.plan is not None else 0,
        "left_alone": left_alone,
        "words": WORDS,
        "fleets": page_of(shown_fleets(fleets, query), query.fleet_page, FLEET_ROWS),
        "fleets_total": len(fleets),
        "nodes": page_of(nodes, query.node_page, ROWS),
        "node_counts": _counts(overview),
        "nodes_total": len(overview.nodes),
        "steps": next_steps(view),
        "stages": STAGES,
        "decisions": page_of(decisions, query.decision_page, ROWS),
        "kinds": KINDS,
        "query": query,
        "refresh_seconds": REFRESH_SECONDS,
    }


def _counts(overview: Overview) -> list[tuple[str, str, int]]:
    """Return how many nodes there are of each verdict and code, the most frequent first."""
    counts: dict[tuple[str, str], int] = {}
    for row in overview.nodes:
        counts[row.verdict, row.code] = counts.get((row.verdict, row.code), 0) + 1
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [(verdict, code, count) for (verdict, code), count in ordered]


def role_of(source: PageSource) -> str:
    """Return the role of this replica, in words."""
    board = source.board
    if board.view.config.dry_run:
        return "dry run: nothing is changed"
    election = board.leadership
    if not election.enabled:
        return "leader (no election)"
    if election.leads:
        return f"leader ({election.holder})"
    return f"standby (current leader: {election.holder or 'unknown'})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """One figure with its parts."""

    name: str
    value: str
    note: str
    bad: bool = False


def _tiles(source: PageSource) -> list[Tile]:
    view = source.board.view
    plan = view.plan
    if plan is None:
        return []
    rows = fleet_rows(view)
    joined = sum(f.joined for f in plan.fleets)
    requested, wanted = sum(r.requested for r in rows), sum(f.target for f in plan.fleets)
    launching = sum(f.launching for f in plan.fleets)
    unplaceable, pending = len(plan.unplaceable), pending_pods(plan)
    cost, bound = sum(row.hourly_usd for row in rows), plan.cost.hourly_usd_lower_bound
    cycle = view.last_cycle
    took = "" if cycle is None else f"took {cycle.seconds:.2f} s"
    return [
        Tile(
            name="Nodes",
            value=f"{joined:,}",
            note=f"{launching} launching, requested {requested}, target {wanted}",
            bad=requested != wanted,
        ),
        Tile(
            name="Pending pods",
            value=f"{pending:,}",
            note=f"{pending - unplaceable} waiting for nodes, {unplaceable} that no fleet can run",
            bad=unplaceable > 0,
        ),
        Tile(
            name="USD per hour",
            value=f"{cost:,.2f}",
            note=f"after the plan {plan.cost.hourly_usd_after:,.2f}; with the cheapest new nodes"
            f" {bound:,.2f} at least"
            + (f"; on-demand prices of {plan.cost.prices}" if plan.cost.prices else ""),
        ),
        Tile(name="Cycles", value=f"{view.cycles:,}", note=took, bad=view.errors_in_a_row > 0),
    ]
