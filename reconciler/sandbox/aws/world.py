"""All Regions of the emulated EC2 under one lock, and the thread that advances them."""

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from threading import Condition, RLock, Thread
from types import MappingProxyType
from typing import Any

from reconciler.sandbox.aws.clock import Clock
from reconciler.sandbox.aws.events.announcements import (
    AnnouncementKind,
    StateChanges,
    rebalance,
    scheduled_change,
)
from reconciler.sandbox.aws.events.interruptions import NOTICE_SECONDS, Interruptions
from reconciler.sandbox.aws.faults.injected import Faults
from reconciler.sandbox.aws.moto_server.surface import MotoRegion
from reconciler.sandbox.aws.region import Ec2Region
from reconciler.sandbox.aws.state.launcher import EndReason
from reconciler.sandbox.aws.values import Delays
from reconciler.sandbox.faults.aws import AwsFaults

_LOG = logging.getLogger(__name__)


class Ec2World:
    """The EC2 side of the sandbox; every access to EC2's state goes through `turn`."""

    def __init__(self, *, clock: Clock, delays: Delays, faults: Faults) -> None:
        self.faults = faults
        self._clock = clock
        self._delays = delays
        self._changed = Condition(RLock())
        self._regions: dict[tuple[str, str], Ec2Region] = {}
        self._interruptions = Interruptions(faults.script)
        self._state_changes = StateChanges()
        self._changes = 0
        self._stopping = False
        self._thread: Thread | None = None

    @contextmanager
    def turn(self) -> Iterator[datetime]:
        """Lock EC2's state for one request, after everything that is due was done.

        The thread or the next turn carries out the request's effects: EC2 answers a ModifyFleet
        before it launches anything.
        """
        with self._changed:
            now = self._clock.now()
            self._advance(now)
            try:
                yield now
            finally:
                self._record(now)
                self._changed.notify_all()

    @contextmanager
    def as_of(self, moment: datetime) -> Iterator[None]:
        """Answer describes in the block with the state at `moment`. Only inside `turn`."""
        with ExitStack() as stack:
            for region in self._regions.values():
                stack.enter_context(region.as_of(moment))
            yield

    def is_vanished(self, instance_ids: Iterable[str]) -> bool:
        """Return whether one of the instances is terminated or unknown in every Region."""
        with self.turn():
            living = {
                key
                for region in self._regions.values()
                for key, instance in region.instances().items()
                if instance.state != "terminated"
            }
        return bool(set(instance_ids) - living)

    def put_faults(self, faults: AwsFaults, seed: int) -> None:
        """Put faults of a script in force from now on."""
        with self.turn() as now:
            self.faults.script.put(faults, now, seed)

    def interrupt(
        self, instance_ids: Iterable[str], notice_seconds: float = NOTICE_SECONDS
    ) -> tuple[str, ...]:
        """Give spot instances their interruption notice; returns those that were found."""
        found: list[str] = []
        with self.turn() as now:
            for region in self._regions.values():
                for instance_id in instance_ids:
                    if region.is_member(instance_id):
                        self._interruptions.notice(region, instance_id, now, notice_seconds)
                        found.append(instance_id)
            self._changes += 1
        return tuple(found)

    def announce(
        self, kind: AnnouncementKind, instance_ids: Iterable[str], starts_in_seconds: float = 0.0
    ) -> tuple[str, ...]:
        """Announce a rebalance or a scheduled change to EventBridge and instance metadata.

        Nothing happens to the instances.

        Args:
            kind: Which of the two.
            instance_ids: Of any Region.
            starts_in_seconds: Until a scheduled change begins.

        Returns:
            The instances that were found.
        """
        found: list[str] = []
        with self.turn() as now:
            for region in self._regions.values():
                here = [each for each in instance_ids if region.is_member(each)]
                if here and kind == "scheduled-change":
                    starts_at = now + timedelta(seconds=starts_in_seconds)
                    region.moto.announce(scheduled_change(here, starts_at), now)
                    for each in here:
                        region.instances()[each].scheduled_at = starts_at
                elif kind == "rebalance":
                    for each in here:
                        region.moto.announce(rebalance(each), now)
                        region.instances()[each].rebalance_at = now
                found.extend(here)
        return tuple(found)

    def facts(self, instance_id: str) -> Mapping[str, Any] | None:
        """Return the facts of one fleet instance; None when it does not exist."""
        with self.turn():
            for region in self._regions.values():
                instance = region.instances().get(instance_id)
                if instance is not None:
                    return instance.facts()
        return None

    def now(self) -> datetime:
        """Return the time of the emulated AWS."""
        return self._clock.now()

    def region(self, account_id: str, name: str) -> Ec2Region:
        """Return one Region, created on first use. Only inside `turn`."""
        key = (account_id, name)
        if key not in self._regions:
            moto = MotoRegion(account_id, name)
            self._regions[key] = Ec2Region(moto, delays=self._delays, faults=self.faults)
        return self._regions[key]

    def regions(self) -> Mapping[tuple[str, str], Ec2Region]:
        """Return the Regions that were used, by account and name. Only inside `turn`."""
        return MappingProxyType(self._regions)

    def terminate(self, instance_ids: list[str], reason: EndReason) -> tuple[str, ...]:
        """End fleet instances from outside, in any Region; return those that were found."""
        found: list[str] = []
        with self.turn() as now:
            for region in self._regions.values():
                here = [i for i in instance_ids if region.is_member(i)]
                region.terminate(here, now, reason)
                found.extend(here)
        return tuple(found)

    def instances(
        self, *, since: int = -1, wait_seconds: float = 0.0
    ) -> tuple[int, tuple[Mapping[str, Any], ...]]:
        """Return all fleet instances, once something changed after change number `since`.

        Args:
            since: The number an earlier call returned; -1 does not wait.
            wait_seconds: How long to wait for a change; then the present state is returned.

        Returns:
            The number of the last change, and per instance the facts of `MotoInstance.facts`.
        """
        with self._changed:
            self._advance(self._clock.now())
            self._changed.wait_for(
                lambda: self._stopping or self._changes > since, timeout=wait_seconds
            )
            facts = tuple(
                instance.facts()
                for region in self._regions.values()
                for instance in region.instances().values()
            )
            return self._changes, facts

    def start(self) -> None:
        """Start a thread that does what is due between requests, and sleeps until then."""
        self._thread = Thread(target=self._run, name="sandbox-ec2", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread and every waiting call."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        with self._changed:
            while not self._stopping:
                self._changed.wait(self._seconds_to_sleep())

    def _seconds_to_sleep(self) -> float | None:
        """Do what is due; return None when nothing else will be due without a request."""
        try:
            due = self._advance(self._clock.now())
        except Exception:  # noqa: BLE001 - a dead thread would stop time for good, unseen
            _LOG.exception("the emulated EC2 failed by itself; the next request tries again")
            return None
        return None if due is None else self._clock.seconds_until(due)

    def _advance(self, now: datetime) -> datetime | None:
        """Do all that is due; return when the next thing is due."""
        changes = self._advance_regions(now)
        while self._interruptions.advance(now, self._regions):
            changes += 1 + self._advance_regions(now)
        if changes:
            self._changes += changes
            self._record(now)
            self._changed.notify_all()
        moments = [region.next_due(now) for region in self._regions.values()]
        moments.extend(self._interruptions.next_due(now))
        return min((moment for moment in moments if moment is not None), default=None)

    def _advance_regions(self, now: datetime) -> int:
        return sum(len(region.advance(now)) for region in self._regions.values())

    def _record(self, now: datetime) -> None:
        seconds = self.faults.script.staleness_seconds()
        for region in self._regions.values():
            region.record(now, seconds)
            self._state_changes.tell(region, now)
