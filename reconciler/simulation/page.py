"""Makes `report.html`: one page with everything in it, readable without a network."""

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined

from reconciler.simulation import plots
from reconciler.simulation.moments import MomentOpener

Json = Mapping[str, Any]


def page(report: Json, opens: MomentOpener | None = None) -> str:
    """Return the page of a report.

    Args:
        report: Its figures.
        opens: Makes the commands that open the worst moments.
    """
    environment = Environment(undefined=StrictUndefined, autoescape=True, trim_blocks=True,
                              lstrip_blocks=True)  # fmt: skip
    environment.filters.update(amount=amount, share=share, change=change, seconds=seconds)
    source = files("reconciler.simulation").joinpath("page.html.j2").read_text(encoding="utf-8")
    runs: Sequence[Json] = report["runs"]
    drawn = [
        {
            "cost_by_day": plots.cost_by_day(run),
            "nodes": plots.nodes_by_fleet(run),
            "cost_by_fleet": plots.cost_by_fleet(run),
            "recorded": plots.recorded_targets(run) if "recorded" in run else "",
        }
        for run in runs
    ]
    return environment.from_string(source).render(
        report=report,
        runs=runs,
        drawn=drawn,
        command=(opens or MomentOpener()).command,
        waiting_curve=plots.waiting_curve(runs),
        pods_waiting=plots.pods_waiting(runs),
        pareto=plots.pareto(report["sweep"]["rows"]) if "sweep" in report else "",
    )


def amount(value: float | None) -> str:
    """Return a number for people: thousands separated, with decimals according to its size."""
    if value is None:
        return "-"
    if isinstance(value, int) or value == int(value):
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.2f}"


def share(value: float | None) -> str:
    """Return a share in percent."""
    return "-" if value is None else f"{value:.1%}"


def seconds(value: float) -> str:
    """Return a duration for people: in seconds, or in minutes and more where it is long."""
    if value < 120:
        return f"{value:.1f} s" if value % 1 else f"{value:.0f} s"
    if value < 7200:
        return f"{value / 60:.1f} min"
    return f"{value / 3600:.1f} h"


def change(row: Json) -> str:
    """Return by how much B differs from A, in words."""
    before, after = row["a"], row["b"]
    if before is None or after is None or before == after:
        return "the same" if before == after else "-"
    if row["unit"] == "s" or not before:
        return f"{after - before:+,.1f}{' ' + row['unit'] if row['unit'] else ''}"
    return f"{after / before - 1:+.1%}"
