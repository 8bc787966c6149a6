"""Raises of targets that EC2 refuses: their fleets get a cool-off, and demand goes to others."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from reconciler.model.actions import SetCapacity
from reconciler.model.errors import (
    Conflict,
    Forbidden,
    InsufficientCapacity,
    OutcomeUnknown,
    Refused,
    Unavailable,
)
from reconciler.model.ids import Region
from reconciler.model.outcome import Outcome
from reconciler.model.plan import Plan
from reconciler.model.saved_state import SavedFleetState
from reconciler.planner.cool_off import COOL_OFF
from reconciler.planner.fleets.health import denied, refused

DENIED_FOR: Final = timedelta(minutes=2)
"""How long every raise of a fleet has to be refused, for a reason other than capacity, before
demand goes elsewhere. A conflict with another writer, or a busy group, ends before that."""
_DENIALS: Final = frozenset(each.__name__ for each in (Conflict, Forbidden, Refused))
_UNANSWERED: Final = frozenset(each.__name__ for each in (OutcomeUnknown, Unavailable))
"""Server errors and answers that are lost: they close one fleet of a region at most. Where more
fail so, EC2 is down, and fleets in a cool-off would be asked only minutes after it is back."""
_REMEMBERED_FOR: Final = COOL_OFF + DENIED_FOR
"""A denial that is older says nothing of the next one."""
_Place = tuple[str, Region]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Denials:
    """Raises of one fleet that were denied in a row, none of them applied."""

    first: datetime
    last: datetime
    unanswered: bool
    """Whether the last one had no answer, or a server error."""


@dataclass(slots=True)
class RefusedRaises:
    """Decides which fleets get a cool-off because of what the execution of a plan returned.

    Such a refusal of ModifyFleet (a limit of vCPUs, a missing right) is not in the fleet's history.
    Since when a fleet is denied is known only to this process: after a restart it is observed
    again.
    """

    _denied: dict[_Place, _Denials] = field(default_factory=dict)

    def noted_in(self, plan: Plan, outcomes: Iterable[Outcome]) -> Plan:
        """Return the plan with the cool-offs that follow from the outcomes of its raises."""
        fleet_states = {(m.fleet, m.region): m for m in plan.fleet_states}
        for outcome in outcomes:
            action = outcome.action
            if not isinstance(action, SetCapacity) or action.to_capacity < action.from_capacity:
                continue
            place = (action.fleet, action.region)
            known = fleet_states.get(place, SavedFleetState(fleet=place[0], region=place[1]))
            lasting = self._is_denied_for_long(place, outcome, plan.at)
            if known.unavailable_until is not None and known.unavailable_until > plan.at:
                continue  # a minimum is asked for during a cool-off too: the cool-off continues
            if outcome.error == InsufficientCapacity.__name__:
                fleet_states[place] = refused(known, outcome.detail, plan.at)
            elif lasting:
                fleet_states[place] = denied(known, outcome.detail, plan.at)
        return replace(
            plan, fleet_states=tuple(fleet_states[place] for place in sorted(fleet_states))
        )

    def _is_denied_for_long(self, place: _Place, outcome: Outcome, at: datetime) -> bool:
        """Note the outcome; return whether every raise was denied for long, this one too."""
        if outcome.settled:
            self._denied.pop(place, None)
        unanswered = outcome.error in _UNANSWERED
        if outcome.error not in _DENIALS and not unanswered:
            return False
        known = self._denied.get(place)
        first = known.first if known is not None and at - known.last <= _REMEMBERED_FOR else at
        self._denied[place] = _Denials(first=first, last=at, unanswered=unanswered)
        lasts = at - first >= DENIED_FOR
        return lasts and not (unanswered and self._others_are_unanswered(place, at))

    def _others_are_unanswered(self, place: _Place, at: datetime) -> bool:
        """Return whether raises of another fleet of the region had no answer lately either."""
        return any(
            other != place
            and other[1] == place[1]
            and denials.unanswered
            and at - denials.last <= _REMEMBERED_FOR
            for other, denials in self._denied.items()
        )
