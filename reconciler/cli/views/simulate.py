"""Figures of a simulation for the terminal, and the progress of one."""

import resource
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TextIO

from rich.console import Console
from rich.table import Table

from reconciler.cli.terminal.output import use_colours
from reconciler.model.text import escape_surrogates
from reconciler.telemetry.logging import is_dumb_terminal

Json = Mapping[str, Any]
QUIET_SECONDS = 2.0
"""A shorter simulation shows no progress."""


class Progress:
    """One line on stderr that is overwritten; nothing where that is not possible."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._began = time.monotonic()
        self._shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def show(self, what: str, share: float) -> None:
        """Show the progress."""
        if self._overwrites() and time.monotonic() - self._began > QUIET_SECONDS:
            self._shown = True
            self._stream.write(f"\r\x1b[K{what}: {share:.0%}")
            self._stream.flush()

    def _overwrites(self) -> bool:
        return self._stream.isatty() and not is_dumb_terminal()

    def tell(self, text: str) -> None:
        """Print a line that stays; a stream that cannot be written ends nothing."""
        with suppress(OSError):
            self._stream.write(f"\r\x1b[K{text}\n" if self._shown else f"{text}\n")
            self._stream.flush()

    def tell_speed(self, found: Json) -> None:
        """Print how long it took, and the peak memory of this process; not part of the report."""
        seconds, cpu = time.monotonic() - self._began, time.process_time()
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        pods = sum(run["pods"] for run in found["runs"])
        plans = sum(run["plans"] for run in found["runs"])
        self._stream.write(
            f"{pods:,} pods, {plans:,} plans in {seconds:.1f} s, {cpu:.1f} s of CPU time of this "
            f"process: {pods / max(cpu, 1e-9):,.0f} pods per second of CPU time; "
            f"at most {memory:,.0f} MiB\n"
        )

    def point(self, done: int, of: int, values: Mapping[str, str], run: Json) -> None:
        """Print the result of a point of a sweep, as soon as it is known."""
        words = ", ".join(f"{key}={value}" for key, value in values.items())
        figures = f"{run['cost']['usd_per_day']:,.2f} USD per day"
        wait = f"p95 {run['waiting']['p95_seconds']:,.1f} s"
        waiting = run["waiting"]
        never = waiting["without_a_node_at_the_end"] + waiting["deleted_without_a_node"]
        left = f", {never:,} pods never had a node" if never else ""
        clear = "\r\x1b[K" if self._overwrites() else ""  # of what shows that it works
        self._stream.write(f"{clear}{done}/{of} {words}: {figures}, {wait}{left}\n")
        self._stream.flush()


def _prices(run: Json) -> str:
    return run["cost"]["prices"] or "no catalogue"


def _overlap(run: Json) -> str:
    return f"{run['recorded']['overlap']:.1%}" if "recorded" in run else "-"


ROWS: tuple[tuple[str, Callable[[Json], str]], ...] = (
    ("USD per day", lambda run: f"{run['cost']['usd_per_day']:,.2f}"),
    ("on-demand prices of", _prices),
    ("lower bound per day", lambda run: f"{run['cost']['usd_lower_bound'] / run['days']:,.2f}"),
    ("node-hours", lambda run: f"{run['nodes']['node_hours']:,.1f}"),
    ("nodes at most", lambda run: f"{run['nodes']['peak']:,}"),
    ("waiting p50", lambda run: f"{run['waiting']['p50_seconds']:,.1f} s"),
    ("waiting p95", lambda run: f"{run['waiting']['p95_seconds']:,.1f} s"),
    ("waiting p99", lambda run: f"{run['waiting']['p99_seconds']:,.1f} s"),
    ("deleted without a node", lambda run: f"{run['waiting']['deleted_without_a_node']:,}"),
    ("without a node at the end", lambda run: f"{run['waiting']['without_a_node_at_the_end']:,}"),
    ("pods evicted", lambda run: f"{sum(run['evictions'].values()):,}"),
    ("pods lost before completion", lambda run: f"{run['jobs_ended_early']:,}"),
)


def _notes(runs: Sequence[Json], heads: Sequence[str]) -> list[str]:
    """Return the notes of the simulations, each with their names where not all have it."""
    found: dict[str, list[str]] = {}
    for head, run in zip(heads, runs, strict=True):
        for note in run["notes"]:
            found.setdefault(note, []).append(head)
    return [
        note if len(names) == len(runs) else f"{', '.join(names)}: {note}"
        for note, names in found.items()
    ]


def _runs(found: Json) -> Sequence[Json]:
    return [*found["runs"], *found.get("peers", ())]


def column_heads(found: Json) -> Sequence[str]:
    """Return the name of each simulation: paths are cut; what a sweep changes may look like one."""
    names = [run["config"] for run in _runs(found)]
    return names if "sweep" in found else _distinct_ends(names)


def _distinct_ends(names: Sequence[str]) -> Sequence[str]:
    """Return the ends of paths: as many of their parts as distinguish all of them."""
    parts = [Path(name).parts or (name,) for name in names]
    longest = max(map(len, parts))
    ends = ([str(Path(*part[-n:])) for part in parts] for n in range(1, longest + 1))
    return next((found for found in ends if len(set(found)) == len(set(names))), names)


def print_figures(found: Json, out: str) -> None:
    """Print a table of the configs, and where the report is."""
    runs, heads = _runs(found), column_heads(found)
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    for head in heads:
        table.add_column(head, justify="right", overflow="fold")
    for name, cell in ROWS:
        table.add_row(name, *(cell(run) for run in runs))
    if any("recorded" in run for run in runs):
        table.add_row("same node-hours as recorded", *map(_overlap, runs))
    console = Console(file=sys.stdout, no_color=not use_colours(), highlight=False, markup=False)
    first = runs[0]
    console.print(f"{first['pods']:,} pods, {first['days']:g} days from {first['start']}")
    console.print(table)
    for note in _notes(runs, heads):
        console.print(f"note: {note}", soft_wrap=True)
    if "peers" in found:
        console.print("(model): a model of that program, see docs/simulate.md")
    if "sweep" in found:
        console.print(found["sweep"]["recommendation"])
    where = escape_surrogates(out)
    console.print(f"report: {where}/report.html, {where}/report.json")
