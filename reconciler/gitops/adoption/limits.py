"""The limits of an adopted fleet's size; pure.

EC2 Fleets have no limits of their own. Where neither a config nor a tag states them, the current
target becomes the minimum, so that adopting a fleet does not empty it.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from reconciler.config.faults import quoted
from reconciler.gitops.adoption.adopted_fleet import AdoptedFleet

_TAGS: Final = {
    "min_capacity": ("min_capacity", "capacity_min"),
    "max_capacity": ("max_capacity", "capacity_max"),
}
"""Tags in which people note a fleet's limits, Kluster Fleet Manager's spelling among them."""


def with_limits(found: AdoptedFleet, tags: Mapping[str, str], target: int) -> AdoptedFleet:
    """Return a fleet with the limits in its tags; without them its target is the minimum."""
    tagged = {
        key: (name, tags[name])
        for key, names in _TAGS.items()
        for name in [next((name for name in names if name in tags), "")]
        if name
    }
    stated = {
        key: int(value)
        for key, (_, value) in tagged.items()
        if value.isascii() and value.isdecimal()
    }
    lowest = stated.get("min_capacity", min(target, stated.get("max_capacity", target)))
    limits = {"min_capacity": lowest, **stated}
    return replace(
        found,
        entry={**found.entry, **{key: limits[key] for key in _TAGS if key in limits}},
        notes=(*found.notes, *_notes(tagged, stated, lowest)),
    )


def _notes(
    tagged: Mapping[str, tuple[str, str]], stated: Mapping[str, int], lowest: int
) -> list[str]:
    why = {
        key: f"its tag {name} is {quoted(value)}, which is no whole number from 0"
        for key, (name, value) in tagged.items()
    }
    notes = []
    if "min_capacity" not in stated:
        notes.append(
            why.get("min_capacity", "nothing states its least number of nodes")
            + f", so its present target {lowest} became min_capacity: it never has fewer until you"
            " lower that"
        )
    if "max_capacity" not in stated:
        notes.append(
            why.get("max_capacity", "nothing states its largest number of nodes")
            + ": it has no max_capacity, so it may grow as far as pods, EC2 and max_hourly_usd"
            " let it"
        )
    return notes
