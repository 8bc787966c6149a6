"""Wires leader election: the identity of this replica, the Lease, and the connection to it."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass

import structlog

from reconciler.adapters.kubernetes import (
    KubernetesLeases,
    LeaseHome,
    Transport,
    connect,
    election_identity,
    lease_home,
    leases_elsewhere,
)
from reconciler.adapters.system_clock import SystemClock
from reconciler.config.schema import SectorConfig
from reconciler.loops.lease.election import Election, ElectionTiming
from reconciler.loops.lease.leadership import Leadership
from reconciler.model.errors import PortError, ReconcilerError
from reconciler.telemetry import events


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidacy:
    """Holds this replica's part in the election, and where the Lease is."""

    leadership: Leadership
    lease_home: LeaseHome


@contextmanager
def candidacy(
    config: SectorConfig,
    clock: SystemClock,
    hindrance: Callable[[], str],
    gained: Callable[[], None],
    lost: Callable[[str], None],
    broken: Callable[[], None],
) -> Iterator[Candidacy]:
    """Yield a candidacy that has not started; `taking_part` starts it.

    Args:
        config: Says whether there is an election, and its times.
        clock: Its time.
        hindrance: Why this replica may not lead at all; empty when it may.
        gained: Called when this replica begins to lead.
        lost: Called with the reason when it leads no longer.
        broken: Called when the program has to end, because a bug ended the election.

    Raises:
        InputError: There is no usable kubeconfig.
        UsageError: The times of the election contradict each other.
    """
    stated = config.leader_election
    # A transport of its own, so that a renewal never waits for a connection; at least two tries per
    # deadline.
    transport = connect(
        config.kubeconfig, config.kube_context, read_seconds=stated.renew_deadline_seconds / 2
    )
    home = lease_home(stated.namespace, config.kubeconfig or config.kube_context)
    timing = ElectionTiming(
        lease_duration_seconds=stated.lease_duration_seconds,
        renew_deadline_seconds=stated.renew_deadline_seconds,
        retry_period_seconds=stated.retry_period_seconds,
    )
    with ExitStack() as stack:
        leases = stack.enter_context(closing(KubernetesLeases(transport, home)))
        identity = stack.enter_context(election_identity())
        election = Election(leases, identity, timing, clock.now, clock.awake_seconds)
        if stated.enabled and home.may_be_made:
            _warn_of_leases_elsewhere(transport, home)
        ours = election if stated.enabled else None
        yield Candidacy(
            leadership=Leadership(ours, hindrance, gained, broken, lost), lease_home=home
        )


def _warn_of_leases_elsewhere(transport: Transport, home: LeaseHome) -> None:
    """Warn once that replicas in another namespace may act: their Lease is not read.

    This is done only outside of the cluster and without a stated namespace, where a mistake is
    likely.
    """

    def look() -> None:
        try:
            places = leases_elsewhere(transport, home)
        except PortError:
            return  # the election reports that the API server does not answer
        if places:
            structlog.get_logger().warning(
                events.LEASES_ELSEWHERE_IGNORED,
                namespaces=list(places[:10]),
                count=len(places),
                ours=home.namespace,
                hint="if one of them is that of your replicas, name it with --lease-namespace",
            )

    threading.Thread(target=look, name="leases-elsewhere", daemon=True).start()


@contextmanager
def taking_part(leadership: Leadership) -> Iterator[None]:
    """Run the election during the block, and release the Lease at its end.

    Raises:
        Exception: A bug has ended the election.
    """
    leadership.start()
    try:
        yield
    finally:
        leadership.stop()


def wait_for_lead(leadership: Leadership, config: SectorConfig, clock: SystemClock) -> None:
    """Wait for the lead for as long as a dead replica's Lease may last, or until the program ends.

    Raises:
        ReconcilerError: Another replica leads.
    """
    times = config.leader_election
    longest = times.lease_duration_seconds + 2 * times.retry_period_seconds
    if clock.stop.is_set() or leadership.wait_until_leading(longest) or clock.stop.is_set():
        return
    if leadership.trouble or not leadership.holder:
        why = leadership.trouble or "the API server did not answer"
        raise ReconcilerError("Lease fleet-reconciler", f"could not be taken: {why}")
    raise ReconcilerError(
        "Lease fleet-reconciler",
        f"is held by {leadership.holder}, which acts",
        "end that replica, or try --dry-run",
    )
