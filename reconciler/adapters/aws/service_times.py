"""Finds since when members of groups with a warm pool of running instances are in service.

Their launch time in EC2 is the time when they entered the pool, possibly hours before. Only scaling
activities state when they left it, and Auto Scaling throttles calls for these when it is busy.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from reconciler.adapters.aws.group_cache import Group
from reconciler.model.errors import Forbidden, NotFound, Refused, Throttled, Unavailable
from reconciler.model.ids import Region
from reconciler.records.aws import Answer, pool_keeps_running, served_since

GROUPS_PER_READ: Final = 10
"""The maximum of groups whose activities are requested in one observation."""

Activity = Mapping[str, Any]
Ask = Callable[[str, Collection[str]], Iterable[tuple[str, Activity]]]


class ServiceTimes:
    """Keeps the activity that took each such member into service, while it is a member.

    Until Auto Scaling has returned its activity, a member counts as in service since the first
    observation that shows it. So it never seems older than it is, even if calls fail. An activity
    that was returned is not requested again. If a group's activities do not go back far enough, or
    may not be read, the first observation counts.
    """

    def __init__(self) -> None:
        self._known: dict[Region, dict[str, Activity]] = {}
        self._unanswered: dict[Region, set[str]] = {}
        """Members whose activity Auto Scaling has not returned yet."""

    def answer(
        self,
        region: Region,
        groups: Sequence[Group],
        ask: Ask,
        at: datetime,
        *,
        calls_max: int = GROUPS_PER_READ,
    ) -> Answer:
        """Return the activities of all such members.

        Args:
            region: The region.
            groups: All its groups as they are listed now.
            ask: Yields these members of a group with the activity that took each into service, as
                far as Auto Scaling tells them. Raises PortErrors, perhaps after some.
            at: AWS's time.
            calls_max: The limit of groups that are asked about.
        """
        running = {
            group["AutoScalingGroupName"]
            for group in groups
            if pool_keeps_running(group.get("WarmPoolConfiguration"))
        }
        before = self._known.get(region, {})
        if not running and not before:
            return {"Activities": []}
        members = {group["AutoScalingGroupName"]: _members(group) for group in groups}
        listed = frozenset().union(*members.values())
        known = {each: activity for each, activity in before.items() if each in listed}
        unanswered = self._unanswered.get(region, set()) & known.keys()
        for name in running:
            new = members[name] - known.keys()
            known.update({each: served_since(name, each, at) for each in new})
            unanswered |= new
        asked = [name for name in sorted(running) if members[name] & unanswered][:calls_max]
        for name in asked:
            wanted = members[name] & unanswered
            try:
                for each, activity in ask(name, wanted):
                    known[each] = activity
                    unanswered.discard(each)
            except (Throttled, Unavailable):
                break  # the next call would take as long
            except (NotFound, Forbidden, Refused):
                pass  # the group is gone, or its activities may not be read
            unanswered -= wanted
        self._known[region], self._unanswered[region] = known, unanswered
        return {"Activities": [activity for _, activity in sorted(known.items())]}


def _members(group: Group) -> frozenset[str]:
    """Return the instances that are not in the group's warm pool."""
    return frozenset(
        instance["InstanceId"]
        for instance in group.get("Instances", ())
        if not (instance.get("LifecycleState") or "").startswith("Warmed:")
    )
