"""Plots over the last day as SVG, drawn here: no script and no library in the browser."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from reconciler.web.history import Sample

WIDTH: Final = 400
HEIGHT: Final = 150
LEFT: Final = 38
RIGHT: Final = 8
TOP: Final = 8
BOTTOM: Final = 20
POINTS_MAX: Final = 360
"""A plot has no more pixels than this."""
SHORT: Final = timedelta(minutes=10)
"""For shorter times, labels have seconds."""
_STEPS: Final = (1, 2, 2.5, 5, 10)
_TICKS: Final = tuple(
    timedelta(minutes=minutes)
    for minutes in (1 / 6, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 180, 240, 360)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a plot."""

    name: str
    style: str
    """Class of the style sheet: `actual`, `wanted`, `bad` or `bound`."""
    points: str
    """In the form of SVG's path data."""
    last: str
    """Its newest value, for the legend."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A mark on an axis."""

    at: float
    text: str
    anchor: str = "middle"
    """SVG's text-anchor, so that a mark at the end is not cut off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """Everything that the template draws."""

    title: str
    lines: tuple[Line, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    summary: str
    """The plot in words, for those who cannot see it."""


def plots_of(samples: Sequence[Sample]) -> tuple[Plot, ...]:
    """Return the plots of nodes, pending pods and cost; none before there are two samples."""
    if len(samples) < 2:
        return ()
    return (
        _plot(
            samples,
            "Nodes",
            ("requested", "wanted", lambda s: s.nodes_requested),
            ("joined", "actual", lambda s: s.nodes_joined),
        ),
        _plot(
            samples,
            "Pending pods",
            ("pending", "actual", lambda s: s.pods_pending),
            ("no fleet", "bad", lambda s: s.pods_unplaceable),
        ),
        _plot(
            samples,
            "USD per hour",
            ("bound", "bound", lambda s: s.usd_per_hour_bound),
            ("cost", "actual", lambda s: s.usd_per_hour),
            money=True,
        ),
    )


Series = tuple[str, str, Callable[[Sample], float]]


def _plot(samples: Sequence[Sample], title: str, *series: Series, money: bool = False) -> Plot:
    begin, end = samples[0].at, samples[-1].at
    form = "%H:%M" if end - begin >= SHORT else "%H:%M:%S"
    most = max(max(value(s) for s in samples) for _, _, value in series)
    top, step = _scale(most)

    def x(at: datetime) -> float:
        share = (at - begin) / (end - begin) if end > begin else 0.0
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)

    def y(value: float) -> float:
        return round(HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM), 1)

    lines = []
    for name, style, value in series:
        points = [(x(at), y(peak)) for at, peak in _thinned(samples, value)]
        last = _number(value(samples[-1]), money=money)
        lines.append(Line(name=name, style=style, points=_steps(points), last=last))
    latest = ", ".join(f"{line.name} {line.last}" for line in lines)
    peaks = f"highest {_number(most, money=money)}"
    return Plot(
        title=title,
        lines=tuple(lines),
        x_ticks=tuple(
            Tick(at=x(at), text=at.strftime(form), anchor=_anchor(x(at)))
            for at in _round_times(begin, end)
        ),
        y_ticks=tuple(
            Tick(at=y(step * n), text=_short(step * n)) for n in range(round(top / step) + 1)
        ),
        summary=f"{title} from {begin:%H:%M} to {end:%H:%M} UTC: now {latest}; {peaks}",
    )


def _anchor(x: float) -> str:
    """Return the anchor: a label near an end is put at the side, so that it is not cut off."""
    if x > WIDTH - 30:
        return "end"
    return "start" if x < LEFT - 10 else "middle"


def _scale(most: float) -> tuple[float, float]:
    """Return the end of the axis and the distance of its three or four round marks."""
    if most <= 0:
        return 1.0, 1.0
    rough = most / 3
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(each * power for each in _STEPS if each * power >= rough)
    if most >= 1:
        step = max(step, 0.5)
    return step * math.ceil(most / step), step


def _round_times(begin: datetime, end: datetime) -> list[datetime]:
    """Return round times between two moments, at most five."""
    span = end - begin
    every = next((tick for tick in _TICKS if span / tick <= 5), _TICKS[-1])
    midnight = begin.replace(hour=0, minute=0, second=0, microsecond=0)
    first = midnight + every * math.ceil((begin - midnight) / every)
    return [first + every * n for n in range(6) if first + every * n <= end]


def _thinned(
    samples: Sequence[Sample], value: Callable[[Sample], float]
) -> list[tuple[datetime, float]]:
    """Return one point per pixel at most: the highest of the values there."""
    size = math.ceil(len(samples) / POINTS_MAX)
    groups = [samples[n : n + size] for n in range(0, len(samples), size)]
    return [(group[-1].at, max(map(value, group))) for group in groups]


def _steps(points: Sequence[tuple[float, float]]) -> str:
    """Return a line that holds each value until the next one, without redundant points."""
    parts = [f"M{points[0][0]:g} {points[0][1]:g}"]
    height = points[0][1]
    for x, y in points[1:]:
        if y != height:
            parts.append(f"H{x:g}V{y:g}")
            height = y
    parts.append(f"H{points[-1][0]:g}")
    return "".join(parts)


def _number(value: float, *, money: bool) -> str:
    if money:
        return f"{value:,.2f}"
    return f"{value:,.0f}" if value == int(value) else f"{value:,g}"


def _short(value: float) -> str:
    """Return a short number for an axis."""
    if value >= 10_000:
        return f"{value / 1000:g}k"
    return f"{value:,.0f}" if value == int(value) else f"{value:g}"
