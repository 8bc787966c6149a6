"""The status for people: the verdict in the first line, then what waits and what comes next."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from reconciler.cli.terminal.plain import plain
from reconciler.gitops.repository.status import STAGES
from reconciler.model.text import left_alone
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
WORKLOADS_MAX: Final = 20
STEPS_MAX: Final = 10
ACTIONS_MAX: Final = 10
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
    yield from _steps(status["next"])
    yield from _actions(status["actions"])


def _verdict(verdict: Json) -> Iterator[Text]:
    """Yield the first line, what to do about it, and what else is wrong."""
    first = Text(f"{verdict['level'].upper()}: ", style=STYLES[verdict["level"]])
    yield first.append(plain(verdict["text"]), style="bold")
    for number, cause in enumerate(verdict["causes"]):
        if number:
            text = f"  also: {cause['headline']}"
            yield _line(f"{text}: {cause['detail']}" if cause["detail"] else text)
        if cause["remedy"]:
            yield _line(f"  → {cause['remedy']}", style="dim")


def _facts(status: Json) -> Iterator[str]:
    cycle = status["cycle"]
    yield (
        f"fleet-reconciler {status['version']}, cluster {status['cluster']}, {_role(status)}, "
        f"{'ready' if status['ready'] else 'NOT ready'}, cycle {cycle['number']}, "
        f"last success {status['last_success_at'] or 'never'}"
    )
    if status["binding"]:
        yield f"cluster {verdict_line(status['binding'])}"
    failed = status["last_failed_action"]
    if failed is not None:
        cause = failed["detail"] or "no cause was given"
        yield f"last failed action: {failed['at']} {failed['action']} {failed['subject']}: {cause}"
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


def _fleets(fleets: Sequence[Json]) -> Table:
    columns = ("fleet", "region", "state", "joined", "launching", "current", "target", "usd/h")
    return _table(
        (*columns, "note"),
        (
            [
                each["fleet"],
                each["region"],
                each["state"],
                each["joined"],
                each["launching"],
                each["requested"],
                each["wanted"],
                f"{each['hourly_usd']:.2f}",
                _fleet_note(each),
            ]
            for each in fleets
        ),
        numbers=frozenset({"joined", "launching", "current", "target", "usd/h"}),
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
    spent = sum(each["hourly_usd"] for each in fleets)
    without_sector = plan.get("pods_without_sector", 0)  # an older program does not say
    return (
        f"{pending} pending: {pending - none} waiting for nodes, {none} that no fleet can run; "
        f"{f'{left_alone(without_sector)}; ' if without_sector else ''}"
        f"{spent:.4f} USD per hour, {cost['hourly_usd_after']:.4f} after the plan "
        f"(at least {cost['hourly_usd_lower_bound']:.4f}{_priced(cost)})"
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
    yield Text()
    yield _table(
        ("pending workload", "pods", "since", "waits for", "why", "smallest remedy"),
        (
            [
                f"{each['kind']} {each['namespace']}/{each['name']}",
                each["pods"],
                each["oldest_at"] or "",
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
    codes = ", ".join(dict.fromkeys(each["code"] for each in workload["reasons"]))
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


def _steps(steps: Sequence[Json]) -> Iterator[RenderableType]:
    if steps:
        yield Text()
        rows = ([each["at"] or "", each["what"], each["why"]] for each in steps[:STEPS_MAX])
        yield _table(("next", "what", "why"), rows)


def _actions(actions: Sequence[Json]) -> Iterator[RenderableType]:
    if actions:
        yield Text()
        columns = ("at", "action", "subject", "outcome", "policy", "because")
        rows = ([action[key] for key in columns] for action in actions[:ACTIONS_MAX])
        yield _table(("last actions", *columns[1:]), rows)


def _table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    numbers: frozenset[str] = frozenset(),
) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        right = name in numbers
        table.add_column(
            name.upper(), justify="right" if right else "left", overflow="fold", no_wrap=right
        )
    for row in rows:
        table.add_row(*(Text(plain(cell)) for cell in row))
    return table


def _line(text: str, style: str = "") -> Text:
    return Text(plain(text), style=style)
