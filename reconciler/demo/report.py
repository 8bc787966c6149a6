"""The result on one screen, and as JSON and SVG in a folder."""

import io
import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from reconciler.demo.measures import Reaction, Spending, percentile

_PICTURE_COLUMNS = 116
_PICTURE = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
"""Rich's own frame without the fonts that it would load from the network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of the demo."""

    commits: tuple[str, ...]
    """One line each, newest first."""
    planned: str
    applied: str
    fleets: tuple[str, ...]
    pods: int
    nodes_most: int
    raises: int
    reaction: Reaction
    spending: Spending
    prices: str
    """Region and date of the on-demand prices."""
    last_plan_empty: bool
    seconds: float


def facts(result: Result) -> list[tuple[str, str]]:
    """Return the lines of the final screen."""
    raised, bound = result.reaction.raised, result.reaction.bound
    spending = result.spending
    return [
        ("committed", "\n".join(result.commits)),
        ("planned", result.planned),
        ("applied", result.applied),
        ("fleets", ", ".join(result.fleets)),
        ("pods", f"{result.pods} ran, {result.reaction.found_room} of them on nodes already there"),
        (
            "pending to a raised target",
            (
                f"p50 {percentile(raised, 0.5):.2f} s, p99 {percentile(raised, 0.99):.2f} s "
                f"({result.raises} calls)"
            ),
        ),
        (
            "pending to a node",
            (
                f"p50 {percentile(bound, 0.5):.1f} s, p99 {percentile(bound, 0.99):.1f} s "
                "(with the sandbox's launch and join times)"
            ),
        ),
        ("nodes at most", str(result.nodes_most)),
        (
            "cost at the peak",
            (
                f"{spending.hourly_usd:.3f} USD per hour; what was bought is within "
                f"{spending.gap:.1%} of the proven lower bound "
                f"(on-demand prices of {result.prices})"
            ),
        ),
        ("last terraform plan", "empty" if result.last_plan_empty else "NOT EMPTY"),
        ("time", f"{result.seconds:.0f} s"),
    ]


def _panel(result: Result) -> Panel:
    table = Table(show_header=False, box=None, padding=(0, 1))
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for name, value in facts(result):
        table.add_row(name, value)
    return Panel(table, title="fleet-reconciler demo", expand=False)


def show(console: Console, result: Result, drawing: str) -> None:
    """Print the final screen."""
    console.print()
    console.print(Text(drawing))
    console.print(_panel(result))


def write_svg(result: Result, file: Path) -> None:
    """Write the final screen as a picture; the plot is a separate one."""
    recorder = Console(record=True, width=_PICTURE_COLUMNS, file=io.StringIO())
    recorder.print(_panel(result))
    file.write_text(recorder.export_svg(title="reconciler demo", code_format=_PICTURE))


def write_json(result: Result, file: Path) -> None:
    """Write the numbers for programs."""
    file.write_text(json.dumps(asdict(result), indent=2, sort_keys=True) + "\n")
