"""The result of a simulation as plain figures: the content of `report.json`."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import timedelta
from math import ceil
from typing import Any

from reconciler.model.snapshot import Snapshot
from reconciler.records.times import rfc3339_exact
from reconciler.simulation.bound import CostBound
from reconciler.simulation.history import HOUR_SECONDS, MINUTE_SECONDS, POINTS, WAIT_COUNTED_SECONDS
from reconciler.simulation.notes import notes
from reconciler.simulation.recorded import agreement
from reconciler.simulation.simulation import DAY_SECONDS, Launch, Result

Json = dict[str, Any]

WORKLOADS_SHOWN = 20
"""How many workloads with long waits are shown, the worst first."""
PERCENTILES = (50, 90, 95, 99, 99.9)
CURVE = (0, *range(5, 100, 5), 96, 97, 98, 99, 99.5, 99.9, 100)
"""Percentiles of the waiting time's curve."""


def figures(result: Result, name: str, workloads: int = WORKLOADS_SHOWN) -> Json:
    """Return the figures of one simulation, with this many workloads that waited long."""
    bound = _bound_by_hour(result)
    recorded = agreement(result)
    usd = sum(launch.usd for launch in result.launches)
    least = sum(bound.values())
    return {
        "config": name,
        "start": rfc3339_exact(result.start),
        "days": round(result.days, 6),
        "pods": result.history.created,
        "plans": result.history.plans,
        "notes": notes(result),
        "not_played": {
            "controllers_without_spec": result.controllers_without_spec,
            "faults_of_nothing": result.faults_of_nothing,
        },
        "cost": {
            "usd": _money(usd),
            "usd_per_day": _money(usd / max(1e-9, result.days)),
            "usd_lower_bound": _money(least),
            "above_lower_bound": _share(usd - least, least),
            "prices": None if result.settings.prices is None else str(result.settings.prices),
            "unpriced_types": sorted({o.instance_type for o in result.offers if not o.priced}),
            "by_day": _by_day(result, bound),
        },
        "nodes": _nodes(result.launches, result.seconds),
        "fleets": _fleets(result),
        "waiting": _waiting(result, workloads),
        "evictions": dict(sorted(result.history.evictions.items())),
        "interruptions": result.interruptions,
        "jobs_ended_early": result.jobs_ended_early,
        "moments": [
            {
                "at": rfc3339_exact(moment.snapshot.at),
                "pods_waiting": moment.waiting,
                "pod": _longest_waiting(moment.snapshot),
                "waited_seconds_together": round(moment.score, 3),
            }
            for moment in result.history.moments
        ],
        "series": _series(result),
        **({"recorded": recorded} if recorded is not None else {}),
        "assumptions": _assumptions(result),
    }


def _longest_waiting(snapshot: Snapshot) -> str:
    """Return the pod that has waited longest for a node, as `plan --explain` names it.

    One that has waited for longer than counts is named only when no other waits.
    """
    counted = timedelta(seconds=WAIT_COUNTED_SECONDS)
    waiting = [
        (snapshot.at - pod.created_at > counted, pod.created_at, str(pod.key))
        for pod in snapshot.cluster.pods
        if pod.node_name is None and not (pod.finished or pod.daemon) and pod.created_at is not None
    ]
    return min(waiting, default=(False, None, ""))[2]


def _assumptions(result: Result) -> Json:
    options = asdict(result.options)
    return {**options.pop("chances"), **options}


def _money(usd: float) -> float:
    return round(usd, 4)


def _share(part: float, whole: float) -> float | None:
    return round(part / whole, 6) if whole > 0 else None


def _bound_by_hour(result: Result) -> dict[int, float]:
    bounds = CostBound(result.offers)
    return {hour: bounds.usd(seconds) for hour, seconds in result.history.pod_seconds().items()}


def _by_day(result: Result, bound: Mapping[int, float]) -> list[Json]:
    """Return each day's cost and its lower bound; the second before the first line is of one."""
    days = max(1, ceil(result.days))
    usd = [0.0] * days
    for launch in result.launches:
        at = launch.begin
        while at < launch.end:
            day = min(days - 1, int(at // DAY_SECONDS))
            end = launch.end if day == days - 1 else min(launch.end, (day + 1) * DAY_SECONDS)
            usd[day] += (end - at) / HOUR_SECONDS * launch.usd_per_hour
            at = end
    least = [0.0] * days
    for hour, value in bound.items():
        least[min(days - 1, hour // 24)] += value
    return [
        {"day": day + 1, "usd": _money(usd[day]), "usd_lower_bound": _money(least[day])}
        for day in range(days)
    ]


def _nodes(launches: Sequence[Launch], seconds: float) -> Json:
    hours = sum(launch.end - launch.begin for launch in launches) / HOUR_SECONDS
    return {
        "launches": len(launches),
        "node_hours": round(hours, 3),
        "peak": _peak(launches),
        "mean": round(hours * HOUR_SECONDS / seconds, 3),
    }


def _peak(launches: Iterable[Launch]) -> int:
    marks = sorted([(e.begin, 1) for e in launches] + [(e.end, -1) for e in launches])
    there = most = 0
    for _, change in marks:
        there += change
        most = max(most, there)
    return most


def _fleets(result: Result) -> list[Json]:
    """Return what each fleet was used for; also those that launched nothing."""
    found = []
    by_fleet: dict[str, list[Launch]] = {}
    for launch in result.launches:
        by_fleet.setdefault(launch.fleet, []).append(launch)
    for fleet in result.settings.fleets():
        mine = by_fleet.get(fleet.name, [])
        found.append(
            {
                "fleet": fleet.name,
                "capacity_type": fleet.lifecycle,
                "launches": len(mine),
                "node_hours": round(sum(e.end - e.begin for e in mine) / HOUR_SECONDS, 3),
                "usd": _money(sum(each.usd for each in mine)),
                "peak": _peak(mine),
                "types": dict(sorted(Counter(each.instance_type for each in mine).items())),
            }
        )
    return found


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Return the value that this percentage does not exceed (nearest rank); 0 without values."""
    if not ordered:
        return 0.0
    return ordered[max(0, ceil(percent / 100 * len(ordered)) - 1)]


def _waiting(result: Result, workloads: int) -> Json:
    """Return the time from creation to a node, of every pod that found one, except DaemonSets'.

    A pod that was deleted before it had a node counts with the time until its deletion. Pods that
    existed when the recording began are left out: the simulation alone makes them wait then.
    """
    ordered = sorted(result.history.waits)
    mean = sum(ordered) / len(ordered) if ordered else 0.0
    return {
        "pods": len(ordered),
        "at_once": sum(each < 1.0 for each in ordered),
        "mean_seconds": round(mean, 3),
        **{f"p{n:g}_seconds": round(percentile(ordered, n), 3) for n in PERCENTILES},
        "max_seconds": round(ordered[-1], 3) if ordered else 0.0,
        "existed_at_the_begin": result.history.existed,
        "without_a_node_at_the_end": result.history.waiting,
        "deleted_without_a_node": result.history.deleted_waiting,
        "curve": [[n, round(percentile(ordered, n), 3)] for n in CURVE],
        "workloads": [
            {
                "workload": str(workload),
                "pods": wait.pods,
                "longest_seconds": round(wait.longest_seconds, 3),
                "waited_seconds_together": round(wait.seconds, 3),
                "without_a_node_at_the_end": wait.without_a_node,
                "deleted_without_a_node": wait.deleted,
            }
            for workload, wait in result.history.long_waits(workloads)
        ],
    }


def _series(result: Result) -> Json:
    """Return series: step's length, nodes of each fleet (mean), pods without a node (max)."""
    step = result.seconds / POINTS
    nodes: dict[str, list[float]] = {
        fleet.name: [0.0] * POINTS for fleet in result.settings.fleets()
    }
    for launch in result.launches:
        first = int(launch.begin / step)
        for index in range(first, min(POINTS, int(launch.end / step) + 1)):
            low, high = max(launch.begin, index * step), min(launch.end, (index + 1) * step)
            nodes[launch.fleet][index] += max(0.0, high - low) / step
    pending = [0] * POINTS
    for minute, count in result.history.waiting_by_minute().items():
        low, high = minute * MINUTE_SECONDS / step, (minute + 1) * MINUTE_SECONDS / step
        for index in range(int(low), min(POINTS, ceil(high))):
            pending[index] = max(pending[index], count)
    return {
        "step_seconds": round(step, 6),
        "nodes": {name: [round(n, 3) for n in values] for name, values in nodes.items()},
        "pods_waiting": pending,
    }


DIFFERENCES = (
    ("cost per day", ("cost", "usd_per_day"), "USD"),
    ("cost above the lower bound", ("cost", "above_lower_bound"), ""),
    ("node-hours", ("nodes", "node_hours"), "h"),
    ("launches", ("nodes", "launches"), ""),
    ("most nodes at once", ("nodes", "peak"), ""),
    ("waiting, p50", ("waiting", "p50_seconds"), "s"),
    ("waiting, p95", ("waiting", "p95_seconds"), "s"),
    ("waiting, p99", ("waiting", "p99_seconds"), "s"),
    ("longest wait", ("waiting", "max_seconds"), "s"),
    ("pods without a node at the end", ("waiting", "without_a_node_at_the_end"), ""),
    ("pods deleted without a node", ("waiting", "deleted_without_a_node"), ""),
    ("pods lost before completion", ("jobs_ended_early",), ""),
    ("spot interruptions", ("interruptions",), ""),
)
"""The figures that are compared between two configs: name, place in the figures, unit."""


def differences(first: Json, second: Json) -> list[Json]:
    """Return the differences between two simulations; evictions as one number."""
    rows = [
        {"what": what, "unit": unit, "a": _at(first, path), "b": _at(second, path)}
        for what, path, unit in DIFFERENCES
    ]
    moved = [sum(each["evictions"].values()) for each in (first, second)]
    return [*rows, {"what": "pods evicted", "unit": "", "a": moved[0], "b": moved[1]}]


def beside(runs: Sequence[Json]) -> list[Json]:
    """Return simulations side by side: a row for each figure, a value for each simulation."""
    rows = [
        {"what": what, "unit": unit, "values": [_at(run, path) for run in runs]}
        for what, path, unit in DIFFERENCES
    ]
    moved = [sum(run["evictions"].values()) for run in runs]
    return [*rows, {"what": "pods evicted", "unit": "", "values": moved}]


def _at(found: Json, path: Sequence[str]) -> Any:
    value: Any = found
    for key in path:
        value = value[key]
    return value
