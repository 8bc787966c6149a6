"""What a change of the config would have meant for a recorded demand; pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from reconciler.gitops.markdown import code
from reconciler.model.text import counted_noun

Json = Mapping[str, Any]
_WORKLOADS_MAX: Final = 10
_WORKLOADS_IN_JSON: Final = 20
_LONGER_SECONDS: Final = 60.0
_LONGER_SHARE: Final = 0.1
"""Waits that grow by no more than either of these are not reported: launches take as many seconds
more or less by chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """Holds the figures of one demand with the previous and the planned config."""

    demand: str
    """Name of the recording."""
    after: Json | None = None
    """With the planned config, as in `report.json` of a simulation; None: see `problem`."""
    before: Json | None = None
    """With the previous config; None: there is none, or see `problem`."""
    problem: str = ""
    """Why something could not be simulated; the plan itself is not affected."""


def replay_json(replay: Replay) -> dict[str, Any]:
    """Return the replay as in `report.json` of `ci plan`, without series and curves."""
    return {
        "demand": replay.demand,
        "before": None if replay.before is None else _figures(replay.before),
        "after": None if replay.after is None else _figures(replay.after),
        "problem": replay.problem or None,
    }


def replay_lines(replay: Replay | None) -> list[str]:
    """Return the part of the Markdown summary; of the demand's names it has only workloads."""
    if replay is None:
        return []
    lines = [f"### Replayed: {code(replay.demand)}", ""]
    if replay.problem:
        lines += [f"Not simulated: {code(replay.problem, 500)}", ""]
    if replay.after is None:
        return lines
    after, before = replay.after, replay.before
    days = f"{after['days']:g} days, {after['pods']:,} {_noun(after['pods'])}"
    head = "| | before | with this config | |" if before else "| | with this config |"
    rule = "|---|---|---|---|" if before else "|---|---|"
    rows = [_row(what, unit, path, before, after) for what, unit, path in _ROWS]
    for note in _notes(before, after):
        lines += [f"Note: {code(note, 500)}", ""]
    return [*lines, f"{days}.", "", head, rule, *rows, "", *_who_waits(before, after)]


_ROWS: Final = (
    ("USD per day", "", ("cost", "usd_per_day")),
    ("waiting for a node, p50", "s", ("waiting", "p50_seconds")),
    ("waiting for a node, p95", "s", ("waiting", "p95_seconds")),
    ("waiting for a node, p99", "s", ("waiting", "p99_seconds")),
    ("pods without a node at the end", "", ("waiting", "without_a_node_at_the_end")),
    ("pods deleted without a node", "", ("waiting", "deleted_without_a_node")),
    ("pods evicted", "", ("evictions",)),
    ("most nodes at once", "", ("nodes", "peak")),
)


def _notes(before: Json | None, after: Json) -> list[str]:
    """Return what is to be known of the figures, each once."""
    return list(dict.fromkeys([*after["notes"], *(before["notes"] if before else ())]))


def _row(what: str, unit: str, path: Sequence[str], before: Json | None, after: Json) -> str:
    now = _number(after, path)
    shown = f"{now:,.2f}".rstrip("0").rstrip(".") + (f" {unit}" if unit else "")
    if before is None:
        return f"| {what} | {shown} |"
    was = _number(before, path)
    earlier = f"{was:,.2f}".rstrip("0").rstrip(".") + (f" {unit}" if unit else "")
    return f"| {what} | {earlier} | {shown} | {_change(was, now)} |"


def _number(figures: Json, path: Sequence[str]) -> float:
    value: Any = figures
    for key in path:
        value = value[key]
    return float(sum(value.values()) if isinstance(value, Mapping) else value)


def _change(was: float, now: float) -> str:
    if was == now:
        return ""
    if was == 0:
        return f"{now - was:+,.2f}".rstrip("0").rstrip(".")
    share = (now - was) / was
    if abs(share) < 0.0005:
        return "about the same"
    return f"{share:+.1%}" if abs(share) < 0.01 else f"{share:+.0%}"


def _who_waits(before: Json | None, after: Json) -> list[str]:
    """Return the workloads whose pods wait, longer than before if that is known; worst first."""
    known = {} if before is None else {w["workload"]: w for w in before["waiting"]["workloads"]}
    lines = []
    for workload in after["waiting"]["workloads"]:
        earlier = known.get(workload["workload"])
        if earlier is None or _waits_longer(workload, earlier):
            lines.append(f"- {code(workload['workload'])}: {_wait_of(workload, earlier)}")
    if not lines:
        return []
    more_lines = len(lines) - _WORKLOADS_MAX
    rest = [f"- … and {counted_noun(more_lines, 'more workload')}"] if more_lines > 0 else []
    head = "Who would wait:" if before is None else "Who would wait longer:"
    return [head, "", *lines[:_WORKLOADS_MAX], *rest, ""]


def _waits_longer(now: Json, before: Json) -> bool:
    """Return whether more pods of a workload wait long or find no node, or they wait for longer."""
    if _never_placed(now) > _never_placed(before) or now["pods"] > before["pods"]:
        return True
    return any(
        now[key] - before[key] > max(_LONGER_SECONDS, _LONGER_SHARE * before[key])
        for key in ("longest_seconds", "waited_seconds_together")
    )


def _wait_of(workload: Json, before: Json | None) -> str:
    """Return how many of its pods wait long, how many find no node, and the longest wait."""
    never = _never_placed(workload)
    placed = workload["pods"] - never
    parts = []
    if placed:
        wait = "waits" if placed == 1 else "wait"
        parts.append(f"{placed:,} {_noun(placed)} {wait} longer than two minutes")
    if never:
        parts.append(f"**{never:,} {_noun(never)} {'finds' if never == 1 else 'find'} no node**")
    longest = f"the longest waits {workload['longest_seconds']:,.0f} s"
    if before is not None:
        longest += f", before {before['longest_seconds']:,.0f} s"
    return f"{', '.join(parts)} ({longest})"


def _noun(pods: int) -> str:
    return "pod" if pods == 1 else "pods"


def _never_placed(workload: Json) -> int:
    """Return how many of its pods never get a node, before the end or their deletion."""
    keys = ("without_a_node_at_the_end", "deleted_without_a_node")
    return sum(workload.get(key, 0) for key in keys)


def _figures(run: Json) -> dict[str, Any]:
    kept = ("days", "pods", "cost", "nodes", "waiting", "evictions", "interruptions", "notes")
    found = {key: run[key] for key in kept}
    found["waiting"] = {k: v for k, v in run["waiting"].items() if k != "curve"}
    found["waiting"]["workloads"] = run["waiting"]["workloads"][:_WORKLOADS_IN_JSON]
    found["cost"] = {k: v for k, v in run["cost"].items() if k != "by_day"}
    return found
