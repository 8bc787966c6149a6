"""Evictions against cost for several settings: `python -m tests.benchmarks disturbance`."""

import sys
from decimal import Decimal
from statistics import fmean

from reconciler.planner.disruption_settings import ScaleInSettings
from reconciler.simulation.peers.models import on_world, peer_of
from tests.benchmarks.disturbance.simulation import Outcome, TwelveMinutes
from tests.benchmarks.disturbance.workload import present

NAME = "disturbance"
TITLE = "What is disturbed for the sake of cost"
WHY = (
    "Twelve minutes of services that grow and shrink, 300 Jobs, and a burst of 1,000 small pods, "
    "on six on-demand shapes in three zones with `consolidation: true` and both timers at a "
    "minute: the real loop in virtual time, pods placed as kube-scheduler does by default. Each "
    "row is the mean of three draws of the workload; `most moves` is the most of any replica in "
    "any of them. The defaults are `settle_time` 5m, and `move_cost_usd` 0.0005."
)
BESIDE = (
    "The same in the [models of other autoscalers](simulate.md#models-of-other-autoscalers), with "
    "the settings of the real runs:"
)
SEEDS = (1, 2, 3)
SETTINGS = (
    (60, "0.0005"),
    (180, "0.0005"),
    (300, "0.0005"),
    (300, "0.02"),
    (300, "0.1"),
    (600, "0.0005"),
)
"""`settle_time` in seconds (`consolidate_after` is the same), and `move_cost_usd`."""

MODELS = (
    "cluster-autoscaler,scale-down-unneeded-time=1m,scale-down-delay-after-add=1m",
    "karpenter,consolidate-after=30s",
)
"""As the programs themselves were run (docs/benchmarks.md)."""


def run() -> str:
    """Measure; its Markdown, while a line appears on stdout for each setting."""
    heading = f"### {TITLE} (`{NAME}`)\n\n{WHY}\n\n"
    if not present():
        sys.stdout.write("  not run: its data is not on this machine\n")
        return f"{heading}Not run: its data is not on this machine.\n"
    rows: list[dict[str, str]] = []
    models: list[dict[str, str]] = []
    for text in MODELS:
        peer = peer_of(text)
        played = [TwelveMinutes(seed, _scale_in(300, "0.0005"), on_world(peer)) for seed in SEEDS]
        models.append({"model": peer.title} | _figures([each.run() for each in played]))
        _say(models[-1])
    for settle_seconds, move_cost_usd in SETTINGS:
        scale_in = _scale_in(settle_seconds, move_cost_usd)
        found = [TwelveMinutes(seed, scale_in).run() for seed in SEEDS]
        rows.append(_row(settle_seconds, move_cost_usd, found))
        _say(rows[-1])
    return f"{heading}{_table(rows)}\n{BESIDE}\n\n{_table(models)}"


def _say(row: dict[str, str]) -> None:
    sys.stdout.write("  " + "; ".join(f"{head} {cell}" for head, cell in row.items()) + "\n")
    sys.stdout.flush()


def _table(rows: list[dict[str, str]]) -> str:
    lines = ["| " + " | ".join(rows[0]) + " |", "|" + " --- |" * len(rows[0])]
    lines += ["| " + " | ".join(row.values()) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _scale_in(settle_seconds: int, move_cost_usd: str) -> ScaleInSettings:
    return ScaleInSettings(
        idle_threshold_seconds=60,
        idle_threshold_explicit=True,
        unneeded_seconds=60,
        settle_seconds=settle_seconds,
        consolidate_after_seconds=settle_seconds,
        move_cost_usd=Decimal(move_cost_usd),
    )


def _row(settle_seconds: int, move_cost_usd: str, found: list[Outcome]) -> dict[str, str]:
    return {
        "settle_time": f"{settle_seconds // 60}m",
        "move_cost_usd": move_cost_usd,
        **_figures(found),
    }


def _figures(found: list[Outcome]) -> dict[str, str]:
    return {
        "pods evicted": f"{fmean(each.evicted for each in found):.0f}",
        "within 60 s of binding": f"{fmean(each.soon for each in found):.0f}",
        "most moves": f"{max(each.most_moves for each in found)}",
        "USD": f"{fmean(each.usd for each in found):.2f}",
        "USD/h at the end": f"{fmean(each.usd_per_hour_at_the_end for each in found):.2f}",
        "nodes at the peak": f"{fmean(each.peak_nodes for each in found):.0f}",
        "wait p95": f"{fmean(each.wait_p95_seconds for each in found):.1f} s",
        "Job pods lost": f"{sum(each.jobs_lost for each in found)}",
    }
