"""Wires leader election: who we are, where the Lease is, how it is reached."""

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
from reconciler.loops.election import Election, ElectionTiming
from reconciler.loops.leadership import Leadership
from reconciler.model.errors import PortError, ReconcilerError
from reconciler.telemetry import events


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidacy:
    """This replica's part in the election, and where the Lease is."""

    leadership: Leadership
    lease_home: LeaseHome


@contextmanager
def candidacy(
    config: SectorConfig,
    clock: SystemClock,
    hindrance: Callable[[], str],
    gained: Callable[[], None],
    broken: Callable[[], None],
) -> Iterator[Candidacy]:
    """A candidacy that has not begun; `taking_part` begins it.

    Args:
        config: Says whether there is an election, and its times.
        clock: Its time.
        hindrance: Why this replica may not lead at all; empty when it may.
        gained: Called when it began to lead.
        broken: Called when the program has to end, because the election did by a bug.

    Raises:
        InputError: There is no usable kubeconfig.
        UsageError: The times do not go together.
    """
    stated = config.leader_election
    # Of its own, so that a renewal never waits for a connection; two tries per deadline at least.
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
        yield Candidacy(
            leadership=Leadership(election if stated.enabled else None, hindrance, gained, broken),
            lease_home=home,
        )


def _warn_of_leases_elsewhere(transport: Transport, home: LeaseHome) -> None:
    """Say once that replicas of another namespace may be at work: their Lease counts for nothing.

    Only outside of the cluster and where no namespace is stated: there it is likely a mistake.
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
    """The election runs for as long as the block; at its end the Lease is let go of.

    Raises:
        Exception: A bug has ended the election.
    """
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
    if leadership.trouble or not leadership.holder:
        why = leadership.trouble or "the API server did not answer"
        raise ReconcilerError("Lease fleet-reconciler", f"could not be taken: {why}")
    raise ReconcilerError(
        "Lease fleet-reconciler",
        f"is held by {leadership.holder}, which acts",
        "end that replica, or try --dry-run",
    )
