"""Filters and pages of the page's long lists, all bounded."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Final, Generic, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit

from reconciler.loops.workloads import Pending
from reconciler.model.text import cut
from reconciler.web.history import KINDS, Decision
from reconciler.web.nodes import NodeRow
from reconciler.web.overview import FleetRow

TEXT_MAX: Final = 300
"""The length of one text in a list: names of pods or labels must not fill the page."""
FIELDS_MAX: Final = 20
FILTER_MAX: Final = 100
PAGES_MAX: Final = 10_000

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """The parameters of a request; unknown or invalid ones are left out."""

    pods: str = ""
    """Text in a workload's name, state or reasons."""
    nodes: str = ""
    """Text in a node's name, fleet or reason."""
    fleets: str = ""
    """Text in a fleet's name, region, state or notes."""
    history: str = ""
    """Text in a decision."""
    kind: str = ""
    """A kind of decision; `failed` for failed ones."""
    workload_page: int = 1
    node_page: int = 1
    fleet_page: int = 1
    decision_page: int = 1

    def link(self, anchor: str, **changed: str | int) -> str:
        """Return the address of the page with some parameters changed."""
        asked = {f.name: getattr(self, f.name) for f in fields(self)} | changed
        given = {name: value for name, value in asked.items() if value not in ("", 1)}
        return f"?{urlencode(given)}#{anchor}"


def query_of(target: str) -> Query:
    """Return the parameters of a request target."""
    try:
        pairs = parse_qsl(urlsplit(target).query, max_num_fields=FIELDS_MAX)
    except ValueError:
        return Query()
    given = dict(pairs)
    kind = given.get("kind", "")
    return Query(
        pods=given.get("pods", "")[:FILTER_MAX],
        nodes=given.get("nodes", "")[:FILTER_MAX],
        fleets=given.get("fleets", "")[:FILTER_MAX],
        history=given.get("history", "")[:FILTER_MAX],
        kind=kind if kind in {*KINDS, "failed"} else "",
        workload_page=_number(given.get("workload_page", "")),
        node_page=_number(given.get("node_page", "")),
        fleet_page=_number(given.get("fleet_page", "")),
        decision_page=_number(given.get("decision_page", "")),
    )


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 5):
        return 1
    return min(max(1, int(text)), PAGES_MAX)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[Row]):
    """Some rows of a list, and where they are in it."""

    rows: Sequence[Row]
    number: int
    pages: int
    total: int
    first: int
    """Counted from 1; 0 when there is none."""
    last: int


def page_of(rows: Sequence[Row], number: int, size: int) -> Page[Row]:
    """Return one page of a list; the last one when there are fewer."""
    pages = max(1, -(-len(rows) // size))
    number = min(number, pages)
    begin = (number - 1) * size
    shown = rows[begin : begin + size]
    return Page(
        rows=shown,
        number=number,
        pages=pages,
        total=len(rows),
        first=begin + 1 if shown else 0,
        last=begin + len(shown),
    )


def shown_workloads(found: Sequence[Pending], query: Query) -> Sequence[Pending]:
    """Return the workloads that the filter lets through."""
    return _matching(
        found,
        query.pods,
        lambda each: f"{each.workload} {each.state} {' '.join(r.code for r in each.refusals)}",
    )


def shown_nodes(found: Sequence[NodeRow], query: Query) -> Sequence[NodeRow]:
    """Return the nodes that the filter lets through."""
    return _matching(
        found,
        query.nodes,
        lambda row: f"{row.name} {row.fleet} {row.verdict} {row.code} {row.because}",
    )


def shown_fleets(found: Sequence[FleetRow], query: Query) -> Sequence[FleetRow]:
    """Return the fleets that the filter lets through."""
    return _matching(found, query.fleets, _words_of_fleet)


def _words_of_fleet(row: FleetRow) -> str:
    fleet = row.plan
    update = "" if fleet.update is None else f"rolling update {fleet.update.state}"
    state = f"{fleet.state} cooling off" if row.cool_off_until else fleet.state
    return f"{fleet.fleet} {fleet.region} {state} {fleet.unavailable} {fleet.removal} {update}"


def shown_decisions(found: Sequence[Decision], query: Query) -> Sequence[Decision]:
    """Return the decisions that the filters let through."""
    if query.kind == "failed":
        found = [decision for decision in found if decision.is_trouble]
    elif query.kind:
        found = [decision for decision in found if decision.kind == query.kind]
    return _matching(
        found,
        query.history,
        _words_of,
    )


def _words_of(decision: Decision) -> str:
    parts = (decision.what, decision.subject, decision.policy, decision.outcome)
    return " ".join((*parts, decision.because, decision.detail))


def _matching(rows: Sequence[Row], text: str, words: Callable[[Row], str]) -> Sequence[Row]:
    if not text:
        return rows
    wanted = text.casefold().split()
    return [row for row in rows if all(each in words(row).casefold() for each in wanted)]


def shown_text(text: object, most: int = TEXT_MAX) -> str:
    """Return a value as the page shows it, with a mark if it was cut."""
    return cut(str(text), most)
