"""Makes plots of a report as SVG with matplotlib; text has the page's colour, light or dark."""

import io
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from reconciler.model.errors import UsageError

Json = Mapping[str, Any]

TEXT = "#010203"
"""A placeholder for the page's text colour until the SVG is written."""
SERIES = (
    "#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#a463f2", "#3ca951", "#ff8ab7", "#9c6b4e",
    "#97bbf5", "#9498a0",
)  # fmt: skip
BOUND = "#7f8590"
FLEETS_MAX = 9
"""How many fleets are drawn separately; the others are drawn as one."""
COMPARED = 4
"""How many fleets have recorded targets drawn next to those of the replay."""
WIDE, NARROW = (9.6, 2.7), (4.7, 2.9)
PARAMETERS: Any = {
    "svg.fonttype": "none", "svg.hashsalt": "fleet-reconciler", "font.family": "sans-serif",
    "font.size": 9, "text.color": TEXT, "axes.labelcolor": TEXT, "axes.edgecolor": TEXT,
    "xtick.color": TEXT, "ytick.color": TEXT, "axes.facecolor": "none", "figure.facecolor": "none",
    "axes.spines.top": False, "axes.spines.right": False, "axes.linewidth": 0.6,
    "legend.frameon": False, "axes.grid": True, "grid.alpha": 0.18, "grid.color": TEXT,
    "axes.axisbelow": True, "legend.fontsize": 8,
}  # fmt: skip
Draw = Callable[[Any], None]


def _svg(draw: Draw, size: tuple[float, float]) -> str:
    """Return a figure with one pair of axes."""
    try:
        import matplotlib as mpl  # noqa: PLC0415 - slow, and an optional extra
        from matplotlib.figure import Figure  # noqa: PLC0415 - as above
    except ImportError as error:
        raise UsageError(
            "reconciler simulate", "plots need matplotlib",
            "pip install 'fleet-reconciler[simulate]'",
        ) from error  # fmt: skip
    with mpl.rc_context(PARAMETERS):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure.add_subplot())
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return _embedded(text.getvalue())


def _embedded(svg: str) -> str:
    """Return the SVG as part of a page: no prologue, and with the page's colour and width."""
    body = svg[svg.index("<svg") :].replace(TEXT, "currentColor")
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    return re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", body, count=1).replace(
        ' height="', ' data-height="', 1
    )


def cost_by_day(run: Json) -> str:
    """Plot each day's cost as bars, and its proven lower bound."""
    days = run["cost"]["by_day"]
    at = [day["day"] for day in days]

    def draw(axes: Any) -> None:
        axes.bar(at, [d["usd"] for d in days], width=0.75, color=SERIES[0], label="cost")
        low = [d["usd_lower_bound"] for d in days]
        axes.bar(at, low, width=0.75, color=BOUND, alpha=0.85, label="lower bound")
        axes.set_xlabel("day")
        axes.set_ylabel("USD")
        axes.set_xticks(at[:: max(1, len(at) // 10)])
        axes.set_xlim(0.4, len(at) + 0.6)
        axes.grid(visible=False, axis="x")
        _legend(axes, 2)

    return _svg(draw, NARROW)


def nodes_by_fleet(run: Json) -> str:
    """Plot nodes over time, a layer for each fleet."""
    series = run["series"]
    ranked = sorted(series["nodes"].items(), key=lambda item: (-sum(item[1]), item[0]))
    drawn = [(name, values) for name, values in ranked if any(values)]
    rest = drawn[FLEETS_MAX:]
    layers = drawn[:FLEETS_MAX]
    if rest:
        summed = [sum(each) for each in zip(*(values for _, values in rest), strict=True)]
        layers = [*layers, (f"{len(rest)} others", summed)]

    def draw(axes: Any) -> None:
        if layers:
            axes.stackplot(
                _times(run), [values for _, values in layers], colors=SERIES,
                labels=[_label(name) for name, _ in layers], step="post", linewidth=0, alpha=0.9,
            )  # fmt: skip
            _legend(axes, 5)
        axes.set_ylabel("nodes")
        axes.set_ylim(bottom=0)
        _dates(axes)

    return _svg(draw, WIDE)


def recorded_targets(run: Json) -> str:
    """Plot recorded targets and those of the replay, for the fleets with the most nodes."""
    series = run["recorded"]["series"]
    recorded, simulated = series["recorded"], series["simulated"]
    size = {name: max(sum(recorded[name]), sum(simulated[name])) for name in recorded}
    drawn = sorted((name for name in size if size[name]), key=lambda n: (-size[n], n))[:COMPARED]
    start = datetime.fromisoformat(run["start"])

    def draw(axes: Any) -> None:
        for name, colour in zip(drawn, SERIES, strict=False):
            for values, line, what in (
                (recorded[name], "-", "recorded"),
                (simulated[name], ":", "replayed"),
            ):
                at = [start + timedelta(seconds=n * series["step_seconds"])
                      for n in range(len(values))]  # fmt: skip
                axes.step(at, values, where="post", color=colour, linestyle=line, linewidth=1.3,
                          label=_label(f"{name}, {what}"))  # fmt: skip
        axes.set_ylabel("target")
        axes.set_ylim(bottom=0)
        _dates(axes)
        if drawn:
            _legend(axes, 4)

    return _svg(draw, (WIDE[0], 3.4))


def pods_waiting(runs: Sequence[Json]) -> str:
    """Plot the maximum of pods without a node over time, for each config."""

    def draw(axes: Any) -> None:
        for number, run in enumerate(runs):
            values = run["series"]["pods_waiting"]
            axes.step(_times(run), values, where="post", color=SERIES[number * 2], linewidth=0.9,
                      label=_label(run["config"]))  # fmt: skip
        axes.set_ylabel("pods without a node")
        axes.set_ylim(bottom=0)
        _dates(axes)
        if len(runs) > 1:
            _legend(axes, 2)

    return _svg(draw, (WIDE[0], 2.1))


def waiting_curve(runs: Sequence[Json]) -> str:
    """Plot the distribution of waiting times, for each config."""

    def draw(axes: Any) -> None:
        for number, run in enumerate(runs):
            curve = run["waiting"]["curve"]
            axes.step([max(0.5, s) for _, s in curve], [p for p, _ in curve], where="post",
                      color=SERIES[number * 2], label=_label(run["config"]))  # fmt: skip
        axes.set_xscale("log")
        axes.set_xlim(left=0.5)
        axes.set_ylim(0, 102)
        axes.set_xlabel("seconds from creation to a node")
        axes.set_ylabel("% of pods")
        if len(runs) > 1:
            axes.legend(loc="lower right")

    return _svg(draw, NARROW)


def cost_by_fleet(run: Json) -> str:
    """Plot what each fleet cost, the most expensive first."""
    fleets = sorted(run["fleets"], key=lambda f: (-f["usd"], f["fleet"]))[: FLEETS_MAX + 3]

    def draw(axes: Any) -> None:
        names = [_label(fleet["fleet"]) for fleet in fleets][::-1]
        colours = [SERIES[2 if f["capacity_type"] == "spot" else 0] for f in fleets][::-1]
        axes.barh(names, [fleet["usd"] for fleet in fleets][::-1], color=colours, height=0.7)
        axes.set_xlabel("USD (orange: spot, blue: on-demand)")
        axes.grid(visible=False, axis="y")

    return _svg(draw, (WIDE[0], max(1.4, 0.28 * len(fleets) + 0.7)))


def pareto(rows: Sequence[Json]) -> str:
    """Plot every config of a sweep by cost and p95 of waiting; undominated ones are joined."""

    def draw(axes: Any) -> None:
        usual = [row for row in rows if not row["on_front"]]
        front = sorted((row for row in rows if row["on_front"]), key=lambda r: r["usd_per_day"])
        axes.scatter(
            [r["usd_per_day"] for r in usual], [r["p95_seconds"] for r in usual],
            color=BOUND, label="beaten by another", zorder=3,
        )  # fmt: skip
        axes.plot(
            [r["usd_per_day"] for r in front], [r["p95_seconds"] for r in front], "o-",
            color=SERIES[2], label="not beaten", zorder=4,
        )  # fmt: skip
        for row in front:
            axes.annotate(str(row["number"]), (row["usd_per_day"], row["p95_seconds"]),
                          xytext=(5, 5), textcoords="offset points")  # fmt: skip
        axes.set_xlabel("USD per day")
        axes.set_ylabel("p95 of waiting, seconds")
        axes.set_ylim(0, max(1.0, 1.15 * max(row["p95_seconds"] for row in rows)))
        _legend(axes, 2)

    return _svg(draw, (WIDE[0], 3.4))


def _label(text: str) -> str:
    """Return a name literally: no formula between dollar signs, and no control characters.

    Legends leave out names that begin with an underscore, but not with a space before it.
    """
    shown = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)
    return f"{' ' if shown.startswith('_') else ''}{shown}".replace("$", r"\$")


def _times(run: Json) -> list[datetime]:
    start, step = datetime.fromisoformat(run["start"]), run["series"]["step_seconds"]
    return [start + timedelta(seconds=n * step) for n in range(len(run["series"]["pods_waiting"]))]


def _dates(axes: Any) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter  # noqa: PLC0415 - slow

    locator = AutoDateLocator()  # type: ignore[no-untyped-call] # untyped there
    axes.xaxis.set_major_locator(locator)
    formatter = ConciseDateFormatter(locator)  # type: ignore[no-untyped-call] # as above
    axes.xaxis.set_major_formatter(formatter)
    axes.margins(x=0)


def _legend(axes: Any, columns: int) -> None:
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=columns, borderaxespad=0.2)
