"""Wires leader election: who we are, where the Lease is, how it is reached."""

import secrets
import socket
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

from reconciler.adapters.kubernetes import (
    KubernetesLeases,
    LeaseHome,
    OtherLeases,
    connect,
    own_namespace,
)
from reconciler.adapters.system_clock import SystemClock
from reconciler.config.schema import SectorConfig
from reconciler.loops.election import Election, ElectionTiming
from reconciler.loops.leadership import Leadership
from reconciler.model.errors import ReconcilerError


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidacy:
    """This replica's part in the election, and where the Lease is."""

    leadership: Leadership
    lease_namespace: Callable[[], str]


@contextmanager
def candidacy(
    config: SectorConfig,
    clock: SystemClock,
    hindrance: Callable[[], str],
    gained: Callable[[], None],
) -> Iterator[Candidacy]:
    """A candidacy that has not begun; `taking_part` begins it.

    Args:
        config: Says whether there is an election, and its times.
        clock: Its time.
        hindrance: Why this replica may not lead at all; empty when it may.
        gained: Called when it began to lead.

    Raises:
        InputError: There is no usable kubeconfig.
        UsageError: The times do not go together.
    """
    stated = config.leader_election
    # Of its own, so that a renewal never waits for a connection; two tries per deadline at least.
    transport = connect(config.kubeconfig, read_seconds=stated.renew_deadline_seconds / 2)
    home = LeaseHome(transport, stated.namespace or own_namespace())
    leases = KubernetesLeases(transport, home)
    election = Election(
        leases,
        identity=f"{socket.gethostname()}_{secrets.token_hex(4)}",
        timing=ElectionTiming(
            lease_duration_seconds=stated.lease_duration_seconds,
            renew_deadline_seconds=stated.renew_deadline_seconds,
            retry_period_seconds=stated.retry_period_seconds,
        ),
        now=clock.now,
        monotonic_seconds=clock.awake_seconds,
    )
    others = OtherLeases(transport, home, clock.awake_seconds)

    def found_hindrance() -> str:
        """Someone who holds a Lease elsewhere, too; who leads already goes on."""
        stated_one = hindrance()
        if stated_one or election.may_act():
            return stated_one
        place = others.held_in()
        return "" if place is None else f"the Lease in namespace {place} is renewed by someone"

    with closing(leases):
        yield Candidacy(
            leadership=Leadership(election if stated.enabled else None, found_hindrance, gained),
            lease_namespace=home,
        )


@contextmanager
def taking_part(leadership: Leadership) -> Iterator[None]:
    """The election runs for as long as the block; at its end the Lease is let go of."""
    leadership.start()
    try:
        yield
    finally:
        leadership.stop()


def wait_for_lead(leadership: Leadership, config: SectorConfig, clock: SystemClock) -> None:
    """Wait for the lead for as long as a dead replica's Lease may last, or until the end.

    Raises:
        ReconcilerError: Another replica leads.
    """
    times = config.leader_election
    longest = times.lease_duration_seconds + 2 * times.retry_period_seconds
    if clock.stop.is_set() or leadership.wait_until_leading(longest) or clock.stop.is_set():
        return
    holder = leadership.holder or leadership.trouble or "nobody known"
    raise ReconcilerError(
        "Lease fleet-reconciler",
        f"is held by {holder}, which acts",
        "end that replica, or try --dry-run",
    )
