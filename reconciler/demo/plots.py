"""Nodes over time: an SVG for the report, and a drawing in characters for the terminal."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import matplotlib as mpl
import plotext
from matplotlib.figure import Figure

from reconciler.demo.follower import Moment

_COLOURS = ("#1b6ca8", "#2a9d8f", "#e9a23b", "#c8553d", "#7b5ea7", "#5c677d", "#9bc53d", "#d1495b")


def fleets_of(moments: Sequence[Moment]) -> list[str]:
    """Every fleet that had a node, by name."""
    return sorted({fleet for moment in moments for fleet in moment.nodes})


def _changes(moments: Sequence[Moment]) -> list[Moment]:
    """The moments at which something is different, and the last one."""
    kept: list[Moment] = []
    for before, moment in zip([None, *moments], moments, strict=False):
        if before is None or (before.nodes, before.pending) != (moment.nodes, moment.pending):
            kept.append(moment)
    return [*kept, moments[-1]] if moments else kept


def draw_svg(moments: Sequence[Moment], began: datetime, file: Path) -> None:
    """Stacked nodes per fleet, and the pods that wait, over seconds; the same data, same bytes."""
    mpl.rcParams.update({"svg.hashsalt": "fleet-reconciler", "font.size": 10})
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    axes = figure.subplots()
    moments = _changes(moments)
    seconds = [(moment.at - began).total_seconds() for moment in moments]
    fleets = fleets_of(moments)
    counts = [[moment.nodes.get(fleet, 0) for moment in moments] for fleet in fleets]
    colours = [_COLOURS[i % len(_COLOURS)] for i in range(len(fleets))]
    axes.stackplot(seconds, counts, labels=fleets, colors=colours, step="post", alpha=0.9)
    axes.set_xlabel("seconds since the demo began")
    axes.set_ylabel("Ready nodes")
    axes.set_ylim(bottom=0)
    axes.grid(visible=True, axis="y", alpha=0.25)
    waiting = axes.twinx()
    pending = [moment.pending for moment in moments]
    waiting.step(
        seconds, pending, where="post", color="#222222", linewidth=1.2, label="pending pods"
    )
    waiting.set_ylabel("pending pods")
    waiting.set_ylim(bottom=0)
    handles = [*axes.get_legend_handles_labels()[0], *waiting.get_legend_handles_labels()[0]]
    axes.legend(handles=handles, loc="upper right", fontsize=8, frameon=False)
    figure.savefig(file, metadata={"Date": None})


def draw_text(moments: Sequence[Moment], began: datetime, width: int) -> str:
    """Ready nodes and pending pods over seconds, in characters without colours."""
    seconds = [(moment.at - began).total_seconds() for moment in moments]
    plotext.clear_figure()
    plotext.theme("clear")
    plotext.plotsize(min(max(width, 60), 100), 14)
    nodes = [sum(moment.nodes.values()) for moment in moments]
    plotext.plot(seconds, nodes, label="Ready nodes", marker="braille")
    plotext.xlabel("seconds since the demo began")
    return str(plotext.uncolorize(plotext.build())).rstrip()
