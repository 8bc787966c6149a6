"""Spot interruptions: the notice two minutes before the end; subscribers get both."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from reconciler.sandbox.aws.events.announcements import interruption
from reconciler.sandbox.aws.faults.scripted import ScriptedFaults
from reconciler.sandbox.aws.region import Ec2Region
from reconciler.sandbox.aws.state.launcher import EndReason
from reconciler.sandbox.faults.trigger import Trigger

NOTICE_SECONDS: Final = 120.0
"""Source: EC2 user guide, "Spot Instance interruption notices"."""
Places = Mapping[tuple[str, str], Ec2Region]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Notice:
    region: Ec2Region
    ends_at: datetime


class Interruptions:
    """The notices that were given. Not thread-safe: the caller holds the world's lock."""

    def __init__(self, faults: ScriptedFaults) -> None:
        self._faults = faults
        self._notices: dict[str, _Notice] = {}
        self._seen: dict[Trigger, set[str]] = {}

    def notice(
        self, region: Ec2Region, instance_id: str, now: datetime, notice_seconds: float
    ) -> None:
        """Announce the interruption of an instance; a second call for it changes nothing."""
        if instance_id in self._notices:
            return
        ends_at = now + timedelta(seconds=notice_seconds)
        self._notices[instance_id] = _Notice(region=region, ends_at=ends_at)
        region.instances()[instance_id].interrupted_at = ends_at
        region.moto.announce(interruption(instance_id), now)

    def advance(self, now: datetime, places: Places) -> bool:
        """Send the notices and make the ends that are due; return whether there were any."""
        before = len(self._notices)
        for rule, trigger in self._faults.interruptions:
            seen = self._seen.setdefault(trigger, set())
            for region in places.values():
                for instance_id in region.running_under(rule):
                    new = instance_id not in seen and instance_id not in self._notices
                    if new and trigger.is_open(now):
                        seen.add(instance_id)
                        if trigger.fires(now):
                            self.notice(region, instance_id, now, rule.notice_seconds)
        given = len(self._notices) > before
        return self._end_those_due(now) or given

    def _end_those_due(self, now: datetime) -> bool:
        due = [key for key, notice in self._notices.items() if notice.ends_at <= now]
        for instance_id in due:
            region = self._notices.pop(instance_id).region
            if region.is_member(instance_id):
                region.terminate([instance_id], now, EndReason.SPOT_INTERRUPTION)
        return bool(due)

    def next_due(self, now: datetime) -> Iterable[datetime]:
        """Return the times after `now` at which `advance` may have something to do."""
        for notice in self._notices.values():
            yield notice.ends_at
        for rule, trigger in self._faults.interruptions:
            begins_at = trigger.since + timedelta(seconds=rule.from_seconds)
            if begins_at > now:
                yield begins_at
