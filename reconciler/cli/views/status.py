"""The status for people: the verdict in the first line, then what waits and what comes next."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from reconciler.cli.terminal.escaping import plain
from reconciler.gitops.repository.status import STAGES
from reconciler.model.text import left_alone, parse_rfc3339, rfc3339
from reconciler.records.binding import verdict_line

Json = dict[str, Any]

STYLES: Final = {
    "ok": "bold green",
    "starting": "bold blue",
    "standby": "bold blue",
    "limited": "bold yellow",
    "degraded": "bold yellow",
    "failing": "bold red",
}
PIPED_WIDTH: Final = 1_000
"""Columns where there is no terminal, so that lines stay whole for `grep`."""
CAUSES_MAX: Final = 20
WORKLOADS_MAX: Final = 20
STEPS_MAX: Final = 10
ACTIONS_MAX: Final = 10
PROSE: Final = frozenset({"note", "what", "why", "smallest remedy", "because", "detail"})
"""Columns of sentences, which are folded first."""
OPTIONAL: Final = frozenset({"region", "note", "since", "smallest remedy"})
"""Columns that are left out where they say nothing: nothing at all, or one region for all."""
FOLDED_MIN: Final = 14
"""Characters that a folded column should have at least."""
WAITS: Final = {
    "unplaceable": "no fleet",
    "new-node": "new nodes",
    "launching": "launching",
    "existing-node": "fits now",
}


def console() -> Console:
    """Return a console on stdout, which respects NO_COLOR and TERM=dumb."""
    found = Console(highlight=False, markup=False, emoji=False)
    return (
        found
        if found.is_terminal
        else Console(highlight=False, markup=False, emoji=False, width=PIPED_WIDTH)
    )


def view_of(status: Json) -> RenderableType:
    """Return the status as it is printed."""
    return Group(*_parts(status))


def _parts(status: Json) -> Iterator[RenderableType]:
    yield from _verdict(status["verdict"])
    yield from map(_line, _facts(status))
    plan = status["plan"]
    if plan is not None:
        yield Text()
        yield _fleets(status["fleets"])
        yield _line(_sums(plan, status["fleets"]))
        yield from _workloads(status)
    yield from _second_loop(status)
    yield from _steps(status)
    yield from _actions(status)


def _verdict(verdict: Json) -> Iterator[Text]:
    """Yield the first line, what to do about it, and what else is wrong."""
    first = Text(f"{verdict['level'].upper()}: ", style=STYLES[verdict["level"]])
    yield first.append(plain(verdict["text"]), style="bold")
    causes = verdict["causes"]
    for number, cause in enumerate(causes[:CAUSES_MAX]):
        if number:
            text = f"  also: {cause['headline']}"
            yield _line(f"{text}: {cause['detail']}" if cause["detail"] else text)
        if cause["remedy"]:
            yield _line(f"  → {cause['remedy']}", style="dim")
    more = verdict.get("causes_total", len(causes)) - CAUSES_MAX  # an older program does not say
    if more > 0:
        yield _line(f"  and {more} more (--output json lists {len(causes)})")


def _facts(status: Json) -> Iterator[str]:
    cycle = status["cycle"]
    yield (
        f"fleet-reconciler {status['version']}, cluster {status['cluster']}, {_role(status)}, "
        f"{'ready' if status['ready'] else 'NOT ready'}, cycle {cycle['number']}, "
        f"last success {_whole_seconds(status['last_success_at']) or 'never'}"
    )
    if status["binding"]:
        yield f"cluster {verdict_line(status['binding'])}"
    failed = status["last_failed_action"]
    if failed is not None:
        cause = failed["detail"] or "no cause was given"
        at, place = _whole_seconds(failed["at"]), _region_of(failed)
        on = f"{failed['subject']} in {place}" if place else failed["subject"]
        yield f"last failed action: {at} {failed['action']} {on}: {cause}"
    config = status["config"]
    if not config["valid"]:
        yield f"{config['file']} is refused; the last valid config stays in force:"
        yield from (f"  {fault}" for fault in config["faults"])
    elif config["commit"]:
        yield f"config {config['file']}"


def _role(status: Json) -> str:
    if status["dry_run"]:
        return "dry run"
    election = status["leader_election"]
    if not election["enabled"]:
        return "leader (no election)"
    if election["leads"]:
        return "leader"
    return f"standby (current leader: {election['holder'] or 'unknown'})"


def _fleets(fleets: Sequence[Json]) -> RenderableType:
    columns = ("fleet", "region", "state", "joined", "launching", "requested", "target", "usd/h")
    return _table(
        (*columns, "note"),
        (
            [
                fleet["fleet"],
                fleet["region"],
                fleet["state"],
                fleet["joined"],
                fleet["launching"],
                fleet["requested"],
                fleet["wanted"],
                f"{fleet['hourly_usd']:.2f}",
                _fleet_note(fleet),
            ]
            for fleet in fleets
        ),
        numbers=frozenset({"joined", "launching", "requested", "target", "usd/h"}),
    )


def _fleet_note(fleet: Json) -> str:
    notes = [fleet["unavailable"]] if fleet["unavailable"] else []
    if fleet.get("removal"):
        notes.append(f"is removed: {fleet['removal']}")
    if update := fleet.get("rolling_update"):
        done = f"{update['new']} of {update['old'] + update['new']} nodes"
        notes.append(f"rolling update to version {update['version']}: {update['state']}, {done}")
    return "; ".join(notes)


def _sums(plan: Json, fleets: Sequence[Json]) -> str:
    none, pending = plan["pods_unplaceable"], plan["pods_pending"]
    cost = plan["cost"]
    spent = sum(fleet["hourly_usd"] for fleet in fleets)
    without_sector = plan.get("pods_without_sector", 0)  # an older program does not say
    return (
        f"{pending} pending: {pending - none} waiting for nodes, {none} that no fleet can run; "
        f"{f'{left_alone(without_sector)}; ' if without_sector else ''}"
        f"{spent:.4f} USD per hour, {cost['hourly_usd_after']:.4f} after the plan "
        f"(with the cheapest new nodes {cost['hourly_usd_lower_bound']:.4f} at least"
        f"{_priced(cost)})"
    )


def _priced(cost: Json) -> str:
    """Return where the prices come from; an older program does not say."""
    prices = cost.get("prices") or {}
    of = ", ".join(filter(None, (prices.get("region"), prices.get("as_of"))))
    return f"; on-demand prices of {of}" if of else ""


def _workloads(status: Json) -> Iterator[RenderableType]:
    found = status["workloads"]
    if not found:
        return
    at = _short_times(status)
    yield Text()
    yield _table(
        ("pending workload", "pods", "since", "waits for", "why", "smallest remedy"),
        (
            [
                f"{each['kind']} {each['namespace']}/{each['name']}",
                each["pods"],
                at(each["oldest_at"]),
                WAITS[each["state"]],
                _why(each),
                each["remedy"],
            ]
            for each in found[:WORKLOADS_MAX]
        ),
        numbers=frozenset({"pods"}),
    )
    more = status["workloads_total"] - WORKLOADS_MAX
    if more > 0:
        yield _line(f"and {more} more workloads (--output json lists {len(found)})")


def _why(workload: Json) -> str:
    codes = ", ".join(dict.fromkeys(reason["code"] for reason in workload["reasons"]))
    return f"{codes}: {workload['because']}" if codes else str(workload["because"])


def _second_loop(status: Json) -> Iterator[RenderableType]:
    if status["second_loop"]:
        yield _line(f"\nSecond loop: {status['second_loop']}")
    for each in status["progress"]:
        reached = STAGES[: STAGES.index(each["stage"]) + 1]
        detail = f" ({each['detail']})" if each["detail"] else ""
        yield _line(f"  {each['config']}: {' → '.join(reached)}{detail}")
    if status["drift"]:
        yield Text()
        columns = ("fleet", "region", "kind", "detail")
        rows = ([drift[key] for key in columns] for drift in status["drift"])
        yield _table(("drift of", *columns[1:]), rows)


def _steps(status: Json) -> Iterator[RenderableType]:
    steps = status["next"]
    if steps:
        at = _short_times(status)
        yield Text()
        rows = ([at(step["at"]), step["what"], step["why"]] for step in steps[:STEPS_MAX])
        yield _table(("next", "what", "why"), rows)


def _actions(status: Json) -> Iterator[RenderableType]:
    actions = status["actions"]
    if actions:
        at = _short_times(status)
        yield Text()
        columns = ("outcome", "policy", "because")
        rows = (
            [at(action["at"]), action["action"], action["subject"], _region_of(action)]
            + [action[key] for key in columns]
            for action in actions[:ACTIONS_MAX]
        )
        yield _table(("last actions", "action", "subject", "region", *columns), rows)


def _region_of(action: Json) -> str:
    """Return the region of an action on a fleet; an older program does not say."""
    return str(action.get("region") or "")


def _short_times(status: Json) -> Callable[[str | None], str]:
    """Return how times are written: as a time of the program's day, else with month and day."""
    since = parse_rfc3339(status["last_success_at"] or status["started_at"])
    passed = timedelta(seconds=status["last_success_age_seconds"])
    today = None if since is None else (since + passed).date()

    def short(text: str | None) -> str:
        at = parse_rfc3339(text or "")
        if at is None:
            return text or ""
        return f"{at:%H:%M:%S}" if at.date() == today else f"{at:%m-%d %H:%M}"

    return short


def _whole_seconds(text: str | None) -> str:
    at = parse_rfc3339(text or "")
    return text or "" if at is None else rfc3339(at)


def _table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    numbers: frozenset[str] = frozenset(),
) -> "_Table":
    cells = [[plain(cell) for cell in row] for row in rows]
    found = {name: [row[number] for row in cells] for number, name in enumerate(columns)}
    shown = {
        name: column
        for name, column in found.items()
        if name not in OPTIONAL or _says_something(name, column)
    }
    return _Table(shown, numbers)


class _Table:
    """A table whose sentences are folded first, and names only where there is no room otherwise.

    Args:
        columns: The cells of each column, by its name.
        numbers: Columns that are aligned at the right, and never folded.
    """

    def __init__(self, columns: Mapping[str, Sequence[str]], numbers: frozenset[str]) -> None:
        self._columns = columns
        self._numbers = numbers

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table for the width that there is."""
        whole = self._unfolded_columns(options.max_width)
        table = Table(box=None, pad_edge=False, header_style="bold")
        for name in self._columns:
            table.add_column(
                name.upper(),
                justify="right" if name in self._numbers else "left",
                overflow="fold",
                no_wrap=name in whole,
            )
        for row in zip(*self._columns.values(), strict=True):
            table.add_row(*map(Text, row))
        yield table

    def _unfolded_columns(self, width: int) -> frozenset[str]:
        """Return the columns that are not folded: as many as leave some room for the others."""
        widths = {
            name: max(map(len, (name, *cells)))
            for name, cells in self._columns.items()
            if name not in PROSE
        }
        foldable = sorted(widths.keys() - self._numbers, key=lambda name: (-widths[name], name))
        for name in foldable:
            others = len(self._columns) - len(widths)
            if sum(widths.values()) + others * FOLDED_MIN + 2 * len(self._columns) <= width:
                break
            del widths[name]
        return frozenset(widths)


def _says_something(name: str, column: Sequence[str]) -> bool:
    return len(set(column) - {""}) > 1 if name == "region" else any(column)


def _line(text: str, style: str = "") -> Text:
    return Text(plain(text), style=style)
