"""The state machine of one EC2 Fleet: pure logic over `values`, driven by the time it is given.

It launches and terminates through `Ec2`, two functions of the caller; it never sleeps, never reads
a clock and uses neither moto nor HTTP.

    submitted -> active <-> modifying
        any of these -> deleted_terminating | deleted_running -> deleted
"""

import copy
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Protocol

from reconciler.sandbox.aws.errors import Ec2Fault
from reconciler.sandbox.aws.state.allocation import choose_pool, choose_victim
from reconciler.sandbox.aws.state.history import FleetHistory
from reconciler.sandbox.aws.values import (
    Delays,
    FleetChange,
    FleetRequest,
    FleetState,
    LaunchRefusal,
    Lifecycle,
    Member,
    Pool,
)

_LIVE = frozenset({FleetState.SUBMITTED, FleetState.ACTIVE, FleetState.MODIFYING})
_LIFECYCLES: tuple[Lifecycle, Lifecycle] = ("on-demand", "spot")


class Ec2(Protocol):
    """What a fleet can do in EC2."""

    def launch(self, fleet: "Fleet", pool: Pool, lifecycle: Lifecycle) -> Member | LaunchRefusal:
        """Start one instance, which is pending at first, or return why not."""
        ...

    def terminate(self, instance_ids: Sequence[str]) -> None:
        """Begin to end instances; they stop counting at once."""
        ...


class Fleet:
    """One EC2 Fleet and its members."""

    def __init__(
        self, *, fleet_id: str, request: FleetRequest, created_at: datetime, delays: Delays
    ) -> None:
        self.id = fleet_id
        self.request = request
        self.created_at = created_at
        self.state = FleetState.SUBMITTED
        self.target = request.target
        self.excess_policy = request.excess_policy
        self.pools = request.pools
        self.launch_template_configs = request.launch_template_configs
        self.context = request.context
        self.history = FleetHistory(created_at, delays.retry_seconds)
        self.refusals: list[tuple[Pool, Lifecycle, LaunchRefusal]] = []
        self._delays = delays
        self._members: dict[str, Member] = {}
        self._leaving: set[str] = set()
        self._shed: set[str] = set()
        self._refuses_until: datetime | None = None
        self._blocked_until: dict[tuple[int, Lifecycle], datetime] = {}
        wait = 0.0 if request.fleet_type == "instant" else delays.activate_seconds
        self._state_due: datetime | None = created_at + timedelta(seconds=wait)
        self._short_since: datetime | None = None
        self._has_launched = False

    @property
    def members(self) -> tuple[Member, ...]:
        """Return the instances that count towards the target, oldest first."""
        return tuple(self._members.values())

    def fulfilled(self, lifecycle: Lifecycle | None = None) -> float:
        """Return the units of the target that members fulfil, pending ones too."""
        return float(sum(m.pool.weight for m in self.members if lifecycle in {None, m.lifecycle}))

    @property
    def activity_status(self) -> str | None:
        """Return `ActivityStatus` of DescribeFleets; None for a fleet that is deleted."""
        if self.state == FleetState.DELETED_TERMINATING:
            return "pending_termination"
        if self.state not in _LIVE:
            return None
        if self._is_short():
            return "error" if self._blocked_until else "pending_fulfillment"
        return "pending_termination" if self._shed else "fulfilled"

    def as_it_is(self) -> "Fleet":
        """Return a copy of the fleet at this moment."""
        still = copy.copy(self)
        still.history = self.history.as_it_is()
        still._members = dict(self._members)  # noqa: SLF001 - of its own class
        still._shed = set(self._shed)  # noqa: SLF001 - of its own class
        still._blocked_until = dict(self._blocked_until)  # noqa: SLF001 - of its own class
        return still

    def modify(
        self,
        change: FleetChange,
        now: datetime,
        *,
        lasts_seconds: float | None = None,
        refuse: bool = False,
    ) -> None:
        """Take a ModifyFleet: absolute values, in force from the next `advance`.

        Args:
            change: The changed fields.
            now: When the request arrived.
            lasts_seconds: How long the fleet is `modifying`; None: as usual.
            refuse: Whether a further ModifyFleet is refused until then.

        Raises:
            Ec2Fault: The fleet is not of type maintain, or it is deleted, or it refuses.
        """
        if self._refuses_until is not None and now < self._refuses_until:
            raise Ec2Fault(
                "FleetNotInModifiableState", f"The fleet '{self.id}' is in state {self.state}"
            )
        if self.request.fleet_type != "maintain" or self.state not in _LIVE:
            raise Ec2Fault(
                "FleetNotInModifiableState",
                f"The fleet '{self.id}' is of type {self.request.fleet_type} and in state "
                f"{self.state}; only live fleets of type maintain can be modified",
            )
        if change.total is not None:
            self.target = self.target.with_total(change.total)
        if change.excess_policy is not None:
            self.excess_policy = change.excess_policy
        if change.context is not None:
            self.context = change.context
        if change.pools is not None and change.launch_template_configs is not None:
            self.pools = change.pools
            self.launch_template_configs = change.launch_template_configs
            self._blocked_until.clear()
        self.state = FleetState.MODIFYING
        seconds = self._delays.modify_seconds if lasts_seconds is None else lasts_seconds
        self._state_due = now + timedelta(seconds=seconds)
        self._refuses_until = self._state_due if refuse else None
        self.history.fleet_change("modify_in_progress", now)

    def delete(self, *, terminate: bool, now: datetime) -> tuple[str, ...]:
        """Take a DeleteFleets; return the instances that the caller must now terminate."""
        self.state = FleetState.DELETED_TERMINATING if terminate else FleetState.DELETED_RUNNING
        self._state_due = None
        self._short_since = None
        self.history.fleet_change(self.state, now)
        return tuple(self._members) if terminate else ()

    @property
    def is_live(self) -> bool:
        """Return whether it is not deleted, nor being deleted."""
        return self.state in _LIVE

    def member_leaving(self, instance_id: str, now: datetime) -> None:
        """Note that an instance began to shut down: it leaves the fleet's count and lists."""
        if self._members.pop(instance_id, None) is not None:
            self._leaving.add(instance_id)
            self.history.instance_change("terminated", now, instance_id)

    def member_gone(self, instance_id: str) -> None:
        """Note that an instance is terminated."""
        self._leaving.discard(instance_id)
        self._shed.discard(instance_id)

    def advance(self, now: datetime, ec2: Ec2) -> None:
        """Do all that is due at `now`: change state, launch, end surplus instances."""
        self._settle_state(now, ec2)
        if self.state in {FleetState.ACTIVE, FleetState.MODIFYING}:
            self._shed_excess(ec2)
            self._fulfil(now, ec2)
        elif not self.is_live and not self._members and not self._leaving:
            self._become_deleted(now)

    def next_due(self, now: datetime) -> datetime | None:
        """Return the next time after `now` at which `advance` has something to do."""
        moments = [self._state_due, self.request.valid_until if self.is_live else None]
        if self._short_since is not None:
            moments.append(self._short_since + timedelta(seconds=self._delays.dispatch_seconds))
            moments.extend(self._blocked_until.values())
        later = [moment for moment in moments if moment is not None and moment > now]
        return min(later, default=None)

    def _settle_state(self, now: datetime, ec2: Ec2) -> None:
        if self._state_due is not None and now >= self._state_due:
            step = "active" if self.state == FleetState.SUBMITTED else "modify_succeeded"
            self.state = FleetState.ACTIVE
            self._state_due = None
            self.history.fleet_change(step, now)
        expires = self.request.valid_until
        if self.is_live and expires is not None and now >= expires:
            self.history.fleet_change("expired", now)
            ec2.terminate(self.delete(terminate=self.request.terminate_with_expiration, now=now))

    def _become_deleted(self, now: datetime) -> None:
        if self.state != FleetState.DELETED:
            self.state = FleetState.DELETED
            self.history.fleet_change("deleted", now)

    def _wanted(self, lifecycle: Lifecycle) -> int:
        return self.target.spot if lifecycle == "spot" else self.target.on_demand

    def _is_short(self) -> bool:
        """Return whether the fleet would launch units of either lifecycle."""
        if self.request.fleet_type != "maintain" and self._has_launched:
            return self.fulfilled() < self.target.total and bool(self._blocked_until)
        return any(self._missing(lifecycle) > 0 for lifecycle in _LIFECYCLES)

    def _missing(self, lifecycle: Lifecycle) -> float:
        """Return the units to launch; a surplus of the other lifecycle does not reduce them."""
        return self._wanted(lifecycle) - self.fulfilled(lifecycle)

    def _shed_excess(self, ec2: Ec2) -> None:
        """With `termination`, end members that the target does not need."""
        if self.excess_policy != "termination" or self.request.fleet_type != "maintain":
            return
        staying = list(self.members)
        victims: list[str] = []
        for lifecycle in _LIFECYCLES:
            excess = -self._missing(lifecycle)
            while excess > 0:
                removable = [
                    m for m in staying if m.lifecycle == lifecycle and m.pool.weight <= excess
                ]
                if not removable:
                    break
                victim = choose_victim(removable)
                staying.remove(victim)
                victims.append(victim.instance_id)
                excess -= victim.pool.weight
        if victims:
            self._shed.update(victims)
            ec2.terminate(victims)

    def _fulfil(self, now: datetime, ec2: Ec2) -> None:
        if self.request.fleet_type != "maintain" and self._has_launched:
            return
        if not self._is_short():
            self._short_since = None
            self._blocked_until.clear()
            return
        self._short_since = self._short_since or now
        if now < self._short_since + timedelta(seconds=self._delays.dispatch_seconds):
            return
        self._has_launched = True
        self._blocked_until = {k: t for k, t in self._blocked_until.items() if t > now}
        for lifecycle in _LIFECYCLES:
            self._launch_missing(lifecycle, now, ec2)
        if not self._is_short():
            self._short_since = None
            self._blocked_until.clear()

    def _launch_missing(self, lifecycle: Lifecycle, now: datetime, ec2: Ec2) -> None:
        refused = False
        while self._missing(lifecycle) > 0:
            free = [p for p in self.pools if (p.order, lifecycle) not in self._blocked_until]
            if not free:
                if refused:
                    self.history.all_blacklisted(now)
                return
            pool = choose_pool(
                free,
                [m for m in self.members if m.lifecycle == lifecycle],
                lifecycle=lifecycle,
                strategy=self._strategy(lifecycle),
                pools_to_use=int(self.request.spot_options.get("InstancePoolsToUseCount") or 1),
            )
            got = ec2.launch(self, pool, lifecycle)
            if isinstance(got, LaunchRefusal):
                refused = True
                self._block(pool, lifecycle, got, now)
            else:
                self._members[got.instance_id] = got
                self.history.launched(got, now)

    def _strategy(self, lifecycle: Lifecycle) -> str:
        if lifecycle == "spot":
            return self.request.spot_strategy
        return self.request.on_demand_strategy

    def _block(
        self, pool: Pool, lifecycle: Lifecycle, refusal: LaunchRefusal, now: datetime
    ) -> None:
        retry_at = now + timedelta(seconds=self._delays.retry_seconds)
        self._blocked_until[(pool.order, lifecycle)] = retry_at
        if self.request.fleet_type == "instant":
            self.refusals.append((pool, lifecycle, refusal))
        self.history.refused(pool, refusal, now)
