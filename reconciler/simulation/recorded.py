"""Compares the targets of a replay with those that were recorded with the demand."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from reconciler.simulation.history import HOUR_SECONDS, POINTS
from reconciler.simulation.simulation import Result

Json = dict[str, Any]
Steps = Sequence[tuple[float, int]]
"""A target over time: seconds since the beginning, and the target from then on."""


def agreement(result: Result) -> Json | None:
    """Return recorded and simulated targets side by side; None when none were recorded.

    `overlap` is the share of node-hours that both have in common: the sum of each fleet's smaller
    target at each moment, divided by that of the larger one. 1 means the same targets at all times.
    A fleet counts from its first record on, and only if both know it.
    """
    recorded: dict[str, list[tuple[float, int]]] = {}
    for fact in result.facts:
        at = (fact.at - result.start).total_seconds()
        recorded.setdefault(fact.fleet, []).append((min(max(0.0, at), result.seconds), fact.target))
    known = sorted(recorded.keys() & result.targets.keys())
    if not known:
        return None
    rows, smaller, larger = [], 0.0, 0.0
    for name in known:
        begin = recorded[name][0][0]
        spans = list(_spans(recorded[name], result.targets[name], begin, result.seconds))
        smaller += sum(min(one, two) * seconds for seconds, one, two in spans)
        larger += sum(max(one, two) * seconds for seconds, one, two in spans)
        rows.append(
            {
                "fleet": name,
                "node_hours_recorded": _hours(seconds * one for seconds, one, _ in spans),
                "node_hours_simulated": _hours(seconds * two for seconds, _, two in spans),
                "node_hours_apart": _hours(seconds * abs(one - two) for seconds, one, two in spans),
            }
        )
    step = result.seconds / POINTS
    return {
        "overlap": round(smaller / larger, 6) if larger else 1.0,
        "fleets": rows,
        "series": {
            "step_seconds": round(step, 6),
            "recorded": {name: _sampled(recorded[name], step) for name in known},
            "simulated": {name: _sampled(result.targets[name], step) for name in known},
        },
    }


def _hours(node_seconds: Iterable[float]) -> float:
    return round(sum(node_seconds) / HOUR_SECONDS, 3)


def _spans(one: Steps, two: Steps, begin: float, end: float) -> Iterable[tuple[float, int, int]]:
    """Yield each interval between steps of either: seconds, and the target of each."""
    marks = sorted({begin, end, *(at for at, _ in (*one, *two) if begin < at < end)})
    ones, twos = _at_each(one, marks), _at_each(two, marks)
    for (low, high), first, second in zip(pairwise(marks), ones, twos, strict=False):
        yield high - low, first, second


def _sampled(steps: Steps, step: float) -> list[int]:
    """Return the target at the start of each of `POINTS` equal parts of the time."""
    return _at_each(steps, [number * step for number in range(POINTS)])


def _at_each(steps: Steps, times: Sequence[float]) -> list[int]:
    """Return the target at each of the times, which are in order; 0 before the first step."""
    found, target, number = [], 0, 0
    for at in times:
        while number < len(steps) and steps[number][0] <= at:
            target = steps[number][1]
            number += 1
        found.append(target)
    return found
