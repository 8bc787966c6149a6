"""Sweeps: all combinations of some keys' values, each a simulation, judged by cost and waiting."""

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

from reconciler.model.errors import UsageError

Json = Mapping[str, Any]
POINTS_MAX = 1000
REPLACED = {"sleep_interval": "give --sleep-seconds, which stands for it"}
"""Keys of the config that a simulation does not read, with what to give instead."""
WAIT_WORTH = 0.05
"""A config that is less than this share cheaper is recommended only if pods wait no longer."""


def points(sweeps: Sequence[str]) -> list[dict[str, str]]:
    """Return every combination of `KEY=V1,V2` words; the last key's values change fastest.

    Raises:
        UsageError: A word has another form, a key occurs twice, or there are too many combinations.
    """
    values: dict[str, list[str]] = {}
    for word in sweeps:
        key, mark, text = word.partition("=")
        found = [each.strip() for each in text.split(",")]
        if not (key and mark) or "" in found or not word.isprintable():
            raise UsageError("--sweep", f"{word!r} is not KEY=VALUE,VALUE")
        if key in REPLACED:
            raise UsageError("--sweep", f"{key} changes nothing in a simulation", REPLACED[key])
        if key in values:
            raise UsageError("--sweep", f"{key} comes twice")
        values[key] = list(dict.fromkeys(found))
    count = prod(map(len, values.values()))
    if count > POINTS_MAX:
        raise UsageError("--sweep", f"{count:,} combinations, at most {POINTS_MAX:,} are run")
    return [dict(zip(values, each, strict=True)) for each in product(*values.values())]


def with_point(document: Json, point: Mapping[str, object]) -> dict[str, Any]:
    """Return a config's document with the point's values at their dotted keys.

    Args:
        document: As `config.document` reads it.
        point: Values as in a document, by dotted key.
    """
    changed: dict[str, Any] = _copied(document)
    for key, value in point.items():
        *path, last = key.split(".")
        place = changed
        for part in path:
            inner = place.get(part)
            place[part] = dict(inner) if isinstance(inner, Mapping) else {}
            place = place[part]
        place[last] = value
    return changed


def _copied(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copied(each) for key, each in value.items()}
    return [_copied(each) for each in value] if isinstance(value, list) else value


def summary(points_: Sequence[Mapping[str, str]], runs: Sequence[Json]) -> Json:
    """Return the sweep's part of a report: a row per point, the front, and the recommendation.

    Args:
        points_: The points; the first is what the others are compared with.
        runs: Their figures, in the same order.
    """
    rows = [
        {
            "number": number,
            "values": dict(point),
            "usd_per_day": run["cost"]["usd_per_day"],
            "above_lower_bound": run["cost"]["above_lower_bound"],
            "p50_seconds": run["waiting"]["p50_seconds"],
            "p95_seconds": run["waiting"]["p95_seconds"],
            "p99_seconds": run["waiting"]["p99_seconds"],
            "without_a_node_at_the_end": run["waiting"]["without_a_node_at_the_end"],
            "deleted_without_a_node": run["waiting"]["deleted_without_a_node"],
            "evictions": sum(run["evictions"].values()),
        }
        for number, (point, run) in enumerate(zip(points_, runs, strict=True), 1)
    ]
    for row in rows:
        row["on_front"] = not any(_beats(other, row) for other in rows)
    best = _recommended(rows)
    return {
        "keys": list(points_[0]),
        "rows": rows,
        "recommended": best["number"],
        "recommendation": _in_words(rows, best),
    }


def _beats(one: Json, other: Json) -> bool:
    """Return whether a row is better in something and worse in nothing."""
    mine, its = ((_unserved(row), row["usd_per_day"], row["p95_seconds"]) for row in (one, other))
    return mine != its and all(a <= b for a, b in zip(mine, its, strict=True))


def _unserved(row: Json) -> int:
    """Return how many pods never had a node: still waiting, or deleted while waiting."""
    found: int = row["without_a_node_at_the_end"] + row["deleted_without_a_node"]
    return found


def _recommended(rows: Sequence[Json]) -> Json:
    """Return the front's row with the least sum of cost and waiting relative to the best."""
    front = [row for row in rows if row["on_front"]]
    fewest = min(map(_unserved, front))
    front = [row for row in front if _unserved(row) == fewest]
    cheapest = min(row["usd_per_day"] for row in front) or 1.0

    def badness(row: Json) -> tuple[float, int]:
        minutes = row["p95_seconds"] / 60
        return row["usd_per_day"] / cheapest + WAIT_WORTH * minutes, row["number"]

    return min(front, key=badness)


def _in_words(rows: Sequence[Json], best: Json) -> str:
    """Return in words what to change, and its effect compared with the first row of the sweep."""
    usual = rows[0]
    changed = [
        f"{key} {value} instead of {usual['values'][key]}"
        for key, value in best["values"].items()
        if value != usual["values"][key]
    ]
    if not changed:
        kept = " and ".join(f"{k} {v}" for k, v in best["values"].items())
        if any(_unserved(row) > _unserved(best) for row in rows):
            return (
                f"Keep {kept}: no other combination that leaves as few pods without a node is "
                "cheaper for what it makes pods wait."
            )
        return f"Keep {kept}: no other combination is cheaper for what it makes pods wait."
    before = usual["usd_per_day"]
    share = best["usd_per_day"] / before - 1 if before else 0.0
    cost = f"{abs(share):.1%} {'cheaper' if share <= 0 else 'more expensive'}"
    wait = best["p95_seconds"] - usual["p95_seconds"]
    fewer = _unserved(usual) - _unserved(best)
    served = f", {fewer:,} fewer pod{'s' * (fewer != 1)} without a node" if fewer else ""
    return f"{' and '.join(changed)}: {cost}, p95 waiting {wait:+.1f} s{served}."
