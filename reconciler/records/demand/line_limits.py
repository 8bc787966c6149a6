"""What a line of demand can hold, and how values that others chose are cut to it."""

from dataclasses import replace

from reconciler.model.cluster import Owner

NAME_LENGTH_MAX = 512
COUNT_MAX = 1_000_000
TEN_YEARS_SECONDS = 315_576_000
"""Longer times are typing errors or broken clocks."""


def bounded_owner(owner: Owner | None) -> Owner | None:
    """Return the owner with names as long as a line holds: the API server limits neither."""
    if owner is None or max(len(owner.kind), len(owner.name)) <= NAME_LENGTH_MAX:
        return owner
    return replace(owner, kind=owner.kind[:NAME_LENGTH_MAX], name=owner.name[:NAME_LENGTH_MAX])


def bounded_seconds(seconds: float) -> float:
    """Return a length of time that a line holds: a kubelet's clock may be wrong."""
    return min(max(0.0, seconds), TEN_YEARS_SECONDS)
