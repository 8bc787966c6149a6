"""Plots pods, nodes and cost over time: SVG for the report, characters for the terminal."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import matplotlib as mpl
import plotext
from matplotlib.figure import Figure

from reconciler.demo.follower import Moment

_COLOURS = ("#1b6ca8", "#2a9d8f", "#e9a23b", "#c8553d", "#7b5ea7", "#5c677d", "#9bc53d", "#d1495b")


def fleets_of(moments: Sequence[Moment]) -> list[str]:
    """Return every fleet that had a node, by name."""
    return sorted({fleet for moment in moments for fleet in moment.nodes})


def _changes(moments: Sequence[Moment]) -> list[Moment]:
    """Return the moments at which something changed, and the last one."""
    kept: list[Moment] = []
    for before, moment in zip([None, *moments], moments, strict=False):
        if before is None or (before.nodes, before.pending) != (moment.nodes, moment.pending):
            kept.append(moment)
    return [*kept, moments[-1]] if moments else kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The cost of a cycle's targets per hour, and its lower bound."""

    at: datetime
    hourly_usd: float
    lower_bound_usd: float


def draw_svg(moments: Sequence[Moment], costs: Sequence[Cost], file: Path) -> None:
    """Draw one workload: waiting pods, nodes per fleet, cost and its bound.

    The time axis has seconds since the first moment; the same data gives the same bytes.
    """
    mpl.rcParams.update({"svg.hashsalt": "fleet-reconciler", "font.size": 10})
    figure = Figure(figsize=(10, 7), layout="constrained")
    waiting, nodes, money = figure.subplots(3, 1, sharex=True, height_ratios=(1, 1.4, 1))
    moments = _changes(moments)
    began = moments[0].at if moments else datetime.max.replace(tzinfo=UTC)
    seconds = [(moment.at - began).total_seconds() for moment in moments]
    _draw_waiting(waiting, seconds, [moment.pending for moment in moments])
    _draw_nodes(nodes, seconds, moments)
    _draw_costs(money, [cost for cost in costs if cost.at >= began], began)
    money.set_xlabel("seconds since the first pod")
    for axes in (waiting, nodes, money):
        axes.set_ylim(bottom=0)
        axes.set_xlim(left=0)
        axes.grid(visible=True, axis="y", alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(loc="upper right", fontsize=8, frameon=False, ncols=3)
    figure.savefig(file, metadata={"Date": None})


def _draw_waiting(axes: Any, seconds: Sequence[float], pending: Sequence[int]) -> None:
    axes.fill_between(seconds, pending, step="post", color="#c8553d", alpha=0.25)
    axes.step(seconds, pending, where="post", color="#c8553d", label="pending pods")
    axes.set_ylabel("pods")


def _draw_nodes(axes: Any, seconds: Sequence[float], moments: Sequence[Moment]) -> None:
    fleets = fleets_of(moments)
    counts = [[moment.nodes.get(fleet, 0) for moment in moments] for fleet in fleets]
    colours = [_COLOURS[i % len(_COLOURS)] for i in range(len(fleets))]
    axes.stackplot(seconds, counts, labels=fleets, colors=colours, step="post", alpha=0.9)
    axes.set_ylabel("Ready nodes")


def _draw_costs(axes: Any, costs: Sequence[Cost], began: datetime) -> None:
    seconds = [(cost.at - began).total_seconds() for cost in costs]
    spent = [cost.hourly_usd for cost in costs]
    bound = [cost.lower_bound_usd for cost in costs]
    axes.step(seconds, spent, where="post", color="#1b6ca8", label="cost of the targets")
    axes.step(
        seconds, bound, where="post", color="#2a9d8f", linestyle="--", label="proven lower bound"
    )
    axes.set_ylabel("USD per hour")


def draw_text(moments: Sequence[Moment], began: datetime, width: int) -> str:
    """Draw Ready nodes and pending pods over seconds, in characters without colours."""
    seconds = [(moment.at - began).total_seconds() for moment in moments]
    plotext.clear_figure()
    plotext.theme("clear")
    plotext.plotsize(min(max(width, 60), 100), 14)
    nodes = [sum(moment.nodes.values()) for moment in moments]
    plotext.plot(seconds, nodes, label="Ready nodes", marker="braille")
    plotext.xlabel("seconds since the demo began")
    return str(plotext.uncolorize(plotext.build())).rstrip()
