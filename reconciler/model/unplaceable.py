"""Pods that no fleet can take, with a reason per fleet."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

from reconciler.model.ids import PodKey, Region
from reconciler.model.saved_state import FailureKind
from reconciler.model.text import cut

T = TypeVar("T")

DETAIL_MAX: Final = 500
"""The maximum length of a reason's detail: names from pods, of which it consists, may have a
megabyte, and it is kept, logged and sent once per pod and fleet."""

UnavailableKind = Literal[
    "",
    "missing",
    "silent",
    "state",
    FailureKind,
    "never-joined",
    "halted",
    "unproven",
]
"""What keeps a fleet from being asked for more, empty where nothing does: EC2 does not have it,
does not answer, or has it in a state in which it serves nothing; its launches or raises fail; its
instances never join; it launches nothing as it is set up; it is not proven that its instances are
nodes of this cluster."""
ReasonKind = Literal[
    UnavailableKind,
    "spot-fallback",
    "later-region",
    "no-fleet",
    "maximum-size",
    "both-maxima",
    "departing",
    "below-one-node",
]
"""Which of several states with one code, and so with one code's words and remedies, it is.

Of `fleet-unavailable`, beside the fleet's own: an unavailable spot fleet keeps its demand off this
one; demand stays with the preferred region; there is no fleet to ask. Of `max-capacity`, where it
is not the config's: the group's maximum size, or both; the fleet is to go. Of `raise-limit`: it
is below what one node costs, so that waiting ends nothing."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Reason:
    """Why one fleet cannot take a pod."""

    fleet: str
    region: Region
    code: str
    detail: str
    """Cut to `DETAIL_MAX` characters."""
    kind: ReasonKind = ""
    """Not part of the plan's JSON: it chooses words and remedies, and the detail says the same."""

    def __post_init__(self) -> None:
        """Cut the detail, whoever wrote it."""
        if len(self.detail) > DETAIL_MAX:
            object.__setattr__(self, "detail", cut(self.detail, DETAIL_MAX))


@dataclass(frozen=True, slots=True, kw_only=True)
class Unplaceable:
    """A pod of ours that no fleet can take, with a reason per fleet."""

    pod: PodKey
    reasons: tuple[Reason, ...]


def with_shared(
    found: Iterable[Unplaceable], made_of: Callable[[tuple[Reason, ...]], T]
) -> Iterator[tuple[Unplaceable, T]]:
    """Return each pod with what is made of its reasons, once for all pods that share them.

    Pods of one shape share their reasons: one per fleet, and hundreds of fleets are many.
    """
    known: dict[int, T] = {}
    for unplaceable in found:
        key = id(unplaceable.reasons)
        if key not in known:
            known[key] = made_of(unplaceable.reasons)
        yield unplaceable, known[key]
