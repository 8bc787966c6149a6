"""The limits of an adopted fleet's size; pure.

EC2 Fleets have no limits of their own. Where neither a config nor a tag states a minimum, the
current target becomes it, so that adopting a fleet does not empty it.
"""

from collections.abc import Container, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from reconciler.config.faults import quoted
from reconciler.gitops.adoption.adopted_fleet import AdoptedFleet

_TAGS: Final = {
    "min_capacity": ("min_capacity", "capacity_min"),
    "max_capacity": ("max_capacity", "capacity_max"),
}
"""Tags in which people note a fleet's limits, Kluster Fleet Manager's spelling among them."""


def with_limits(
    found: AdoptedFleet, tags: Mapping[str, str], target: int, written: Mapping[str, Any]
) -> AdoptedFleet:
    """Return a fleet with the limits that a given config leaves open.

    They are those in its tags; without a minimum there its target is the minimum.

    Args:
        found: The fleet.
        tags: Its tags.
        target: Its present target capacity.
        written: Its entry in the given config, whose limits hold; empty: the config has none.
    """
    given = {
        key: written[name] for key, names in _TAGS.items() for name in names if name in written
    }
    tagged = {
        key: (name, tags[name])
        for key, names in _TAGS.items()
        for name in [next((name for name in names if name in tags), "")]
        if name and key not in given
    }
    bounds = {key: int(value) for key, value in given.items() if _is_count(str(value))}
    first = str(written.get("initial_node_count", ""))
    unfit = dict(_unfit(tagged, bounds, int(first) if _is_count(first) else 0))
    stated = {key: int(value) for key, (_, value) in tagged.items() if key not in unfit}
    most = {**bounds, **stated}.get("max_capacity", target)
    lowest = stated.get("min_capacity", min(target, most))
    limits = {"min_capacity": lowest, **stated}
    return replace(
        found,
        entry={
            **found.entry,
            **{key: limits[key] for key in _TAGS if key in limits and key not in given},
        },
        notes=(*found.notes, *_notes(unfit, {**given, **stated}, lowest)),
    )


def _is_count(value: str) -> bool:
    return value.isascii() and value.isdecimal()


def _unfit(
    tagged: Mapping[str, tuple[str, str]], bounds: Mapping[str, int], first: int
) -> Iterator[tuple[str, str]]:
    """Yield the limits in tags that cannot hold, with the reason.

    Args:
        tagged: Names and values of the tags, by limit.
        bounds: The limits that the given config states.
        first: The `initial_node_count` that it states, which a maximum may not be below.
    """
    for key, (name, value) in tagged.items():
        if not _is_count(value):
            yield key, f"its tag {name} is {quoted(value)}, which is no whole number from 0"
        elif key == "min_capacity" and int(value) > bounds.get("max_capacity", int(value)):
            yield key, f"its tag {name} is {value}, above max_capacity {bounds['max_capacity']}"
        elif key == "max_capacity" and int(value) < bounds.get("min_capacity", int(value)):
            yield key, f"its tag {name} is {value}, below min_capacity {bounds['min_capacity']}"
        elif key == "max_capacity" and int(value) < first:
            yield key, f"its tag {name} is {value}, below initial_node_count {first}"


def _notes(unfit: Mapping[str, str], stated: Container[str], lowest: int) -> Iterator[str]:
    """Yield notes on limits that neither the given config nor tags state."""
    if "min_capacity" not in stated:
        yield (
            unfit.get("min_capacity", "nothing states its least number of nodes")
            + f", so its present target {lowest} became min_capacity: it never has fewer until you"
            " lower that"
        )
    if "max_capacity" not in stated:
        yield (
            unfit.get("max_capacity", "nothing states its largest number of nodes")
            + ": it has no max_capacity, so it may grow as far as pods, EC2 and max_hourly_usd"
            " let it"
        )
