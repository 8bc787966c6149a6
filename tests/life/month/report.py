"""What a month came to: figures, a Markdown table, a plot."""

from collections.abc import Sequence
from dataclasses import dataclass

from tests.life.month.bound import (
    Steps,
    bare_seconds,
    boot_seconds,
    lingering,
    needed,
)
from tests.life.month.simulation import (
    BOOT_SECONDS,
    IDLE_SECONDS,
    SIZES,
    SLEEP_SECONDS,
    USD_PER_CPU,
    Outcome,
    capacity,
)

HOUR = 3600.0
WIDTH, HEIGHT, MARGIN = 900, 150, 40
COLOURS = {"nodes": "#d9822b", "policy bound": "#1f6f8b", "needed": "#8a9ba8"}


@dataclass(frozen=True, slots=True)
class Figures:
    """Node-hours of one sector, or of all: what ran, and the three bounds of `bound`."""

    name: str
    launches: int
    hours: float
    bare: float
    boot: float
    policy: float


def figures(found: Outcome) -> list[Figures]:
    """Per sector, and all of them together."""
    rows = [_of_sector(found, sector) for sector in SIZES]
    total = Figures(
        name="all",
        launches=sum(row.launches for row in rows),
        hours=sum(row.hours for row in rows),
        bare=sum(row.bare for row in rows),
        boot=sum(row.boot for row in rows),
        policy=sum(row.policy for row in rows),
    )
    return [*rows, total]


def _of_sector(found: Outcome, sector: str) -> Figures:
    nodes = found.nodes.get(sector, [])
    steps = needed(found.intervals.get(sector, []), capacity(sector))
    stays = lingering(steps, IDLE_SECONDS)
    return Figures(
        name=sector,
        launches=len(nodes),
        hours=sum(end - begin for begin, end in nodes) / HOUR,
        bare=bare_seconds(steps, found.seconds) / HOUR,
        boot=boot_seconds(steps, found.seconds, BOOT_SECONDS) / HOUR,
        policy=boot_seconds(stays, found.seconds, BOOT_SECONDS) / HOUR,
    )


def table(rows: Sequence[Figures]) -> str:
    """Markdown."""
    lines = [
        "| sector | launches | node-hours | bare bound | with boots | by the config |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        bounds = [
            f"{bound:,.1f} (+{row.hours / bound - 1:.1%})"
            for bound in (row.bare, row.boot, row.policy)
        ]
        cells = [row.name, f"{row.launches:,}", f"{row.hours:,.1f}", *bounds]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def summary(found: Outcome, *, real: bool) -> str:
    """Sentences for people."""
    source = "traces beside the repository" if real else "a drawn workload: the traces are absent"
    days = found.seconds / 86_400
    return (
        f"{days:g} days from {source}: {found.pods:,} pods, {found.cycles:,} cycles in "
        f"{found.cpu_seconds:.0f} s of CPU time; {found.evictions} pods moved, "
        f"{found.protected_evictions} protected ones; the longest that a node stood idle: "
        f"{max(found.idle, default=0):.0f} s (idle_threshold {IDLE_SECONDS:.0f} s, one cycle at "
        f"most {SLEEP_SECONDS:.0f} s); pods waited {found.wait(50):.0f} s in the middle, "
        f"{found.wait(99):.0f} s at the 99th percentile."
    )


def price_of_moves(found: Outcome, without: Outcome) -> str:
    """What the moves of a month saved, against the same month in which no pod is moved."""
    dear, cheap = usd(figures(without)), usd(figures(found))
    ratio = found.evictions / (dear - cheap) if dear > cheap else 0.0
    return (
        f"Without moving pods (only empty nodes end) the same nodes cost {dear:,.0f} USD instead "
        f"of {cheap:,.0f}: {found.evictions:,} moves save {dear - cheap:,.0f} USD, "
        f"{ratio:.1f} for each dollar."
    )


def usd(rows: Sequence[Figures]) -> float:
    """What the node-hours of all sectors cost."""
    return sum(row.hours * SIZES[row.name][0] * USD_PER_CPU for row in rows if row.name in SIZES)


def plot(found: Outcome) -> str:
    """An SVG: per sector the nodes that ran, those the config's bound asks for, those needed."""
    height = len(SIZES) * (HEIGHT + MARGIN) + MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH + 2 * MARGIN} {height}">',
        "<style>text {font: 12px sans-serif}</style>",
        f'<rect width="{WIDTH + 2 * MARGIN}" height="{height}" fill="white"/>',
    ]
    for number, sector in enumerate(SIZES):
        parts += _panel(found, sector, MARGIN + number * (HEIGHT + MARGIN))
    for number, (name, colour) in enumerate(COLOURS.items()):
        x, y = MARGIN + number * 160, height - 12
        parts.append(f'<rect x="{x}" y="{y - 9}" width="18" height="4" fill="{colour}"/>')
        parts.append(f'<text x="{x + 24}" y="{y}">{name}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(found: Outcome, sector: str, top: float) -> list[str]:
    steps = needed(found.intervals.get(sector, []), capacity(sector))
    curves = {
        "nodes": _running(found.nodes.get(sector, [])),
        "policy bound": lingering(steps, IDLE_SECONDS),
        "needed": steps,
    }
    most = max(1, *(value for curve in curves.values() for _, value in curve))
    parts = [
        f'<text x="{MARGIN}" y="{top - 8}">{sector}: nodes, at most {most}</text>',
        f'<path d="M{MARGIN} {top + HEIGHT}h{WIDTH}" stroke="#444"/>',
    ]
    for name, curve in curves.items():
        points = " ".join(_points(curve, found.seconds, most, top))
        parts.append(
            f'<polyline fill="none" stroke="{COLOURS[name]}" stroke-width="1" points="{points}"/>'
        )
    return parts


def _running(nodes: Sequence[tuple[float, float]]) -> Steps:
    """How many instances ran, over time."""
    changes = sorted([(begin, 1) for begin, _ in nodes] + [(end, -1) for _, end in nodes])
    count, steps = 0, [(0.0, 0)]
    for at, change in changes:
        count += change
        steps.append((at, count))
    return steps


def _points(curve: Steps, seconds: float, most: int, top: float) -> list[str]:
    """A value per pixel: the highest of its time, so that no peak is lost."""
    columns = [0] * (WIDTH + 1)
    ends = [*(at for at, _ in curve[1:]), seconds]
    for (at, value), end in zip(curve, ends, strict=True):
        first, last = (min(WIDTH, int(moment / seconds * WIDTH)) for moment in (at, end))
        for column in range(first, last + 1):
            columns[column] = max(columns[column], value)
    return [
        f"{MARGIN + column},{top + HEIGHT - value / most * HEIGHT:.1f}"
        for column, value in enumerate(columns)
    ]
