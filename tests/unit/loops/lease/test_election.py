"""Leader election: who acts, who takes over and when, what is written on the Lease."""

from datetime import UTC, datetime

import pytest

from reconciler.loops.lease.election import JITTER, ElectionTiming
from reconciler.model.errors import UsageError
from reconciler.ports.leases import LeaseRecord
from tests.unit.loops.lease.candidates import TIMING, Field

RETRY = TIMING.retry_period_seconds
LEASE = TIMING.lease_duration_seconds
DEADLINE = TIMING.renew_deadline_seconds


def test_first_candidate_leads_and_the_second_stands_by() -> None:
    """Two replicas that both act end each other's nodes."""
    field = Field()
    first, second = field.add(), field.add()
    field.pass_time(120)
    assert field.leaders == ["replica-0"]
    assert second.election.holder == "replica-0" == first.election.holder


def test_lease_says_what_other_tools_expect() -> None:
    """`kubectl get lease` and client-go's candidates read the same fields."""
    field = Field()
    field.add()
    field.pass_time(5)
    record = field.lease.record
    assert record is not None
    assert (record.holder, record.duration_seconds, record.transitions) == ("replica-0", 15, 0)
    assert record.acquired_at is not None
    assert record.renewed_at is not None
    assert (record.renewed_at - record.acquired_at).total_seconds() == pytest.approx(2 * RETRY)


def test_lease_whose_transitions_are_at_their_limit_is_taken() -> None:
    """A restored or edited Lease kept every replica from leading: the server refuses one more."""
    field = Field()
    field.lease.record = LeaseRecord(holder="old", transitions=2**31 - 1, version="1")
    only = field.add()
    field.pass_time(2 * LEASE)
    assert only.election.may_act()
    assert field.lease.record.transitions == 2**31 - 1


def test_dead_leader_is_followed_after_the_lease_duration_and_not_before() -> None:
    """Sooner, two could act; later, pods wait for nobody."""
    field = Field()
    first, second = field.add(), field.add()
    field.pass_time(30)
    first.running = False
    died_at = field.time.seconds
    while not second.election.may_act():
        field.pass_time(0.1)
    waited = field.time.seconds - died_at
    assert LEASE - RETRY <= waited <= LEASE + RETRY * JITTER
    assert field.lease.record is not None
    assert field.lease.record.transitions == 1


def test_candidate_that_is_reported_each_renewal_takes_over_within_the_lease_duration() -> None:
    """The watch on the Lease saves the pause between two looks."""
    field = Field()
    first, second = field.add(), field.add()
    first.way.after = second.step
    field.pass_time(30)
    first.running = False
    died_at = field.time.seconds
    while not second.election.may_act():
        field.pass_time(0.1)
    assert field.time.seconds - died_at <= LEASE + 0.2


def test_leader_that_cannot_renew_stops_before_anyone_may_follow() -> None:
    """A partitioned leader still reaches EC2."""
    field = Field()
    first, second = field.add(), field.add()
    field.pass_time(30)
    first.way.reachable = False
    stopped_at = None
    cut_at = field.time.seconds
    while not second.election.may_act():
        field.pass_time(0.1)
        if stopped_at is None and not first.election.may_act():
            stopped_at = field.time.seconds
    assert stopped_at is not None
    assert stopped_at - cut_at <= DEADLINE + 0.1
    assert field.time.seconds - stopped_at >= LEASE - DEADLINE - RETRY
    assert "no answer" in first.election.trouble


def test_leader_whose_answers_are_lost_stops_although_it_renews() -> None:
    """What is not known to be renewed may have been taken."""
    field = Field()
    first, _ = field.add(), field.add()
    field.pass_time(30)
    first.way.answers = False
    field.pass_time(DEADLINE)
    assert field.leaders == []


def test_partition_that_heals_in_time_changes_nothing() -> None:
    """A short hiccup is no reason to change hands."""
    field = Field()
    first, _ = field.add(), field.add()
    field.pass_time(30)
    first.way.reachable = False
    field.pass_time(DEADLINE - 2 * RETRY)
    first.way.reachable = True
    field.pass_time(60)
    assert field.leaders == ["replica-0"]


def test_stopped_and_continued_leader_does_not_act_on_its_old_lease() -> None:
    """SIGSTOP, a frozen disk, a suspended laptop: it wakes up and thinks it still leads."""
    field = Field()
    first, second = field.add(), field.add()
    field.pass_time(30)
    first.running = False
    field.pass_time(60)
    assert second.election.may_act()
    assert not first.election.may_act()
    first.running = True
    field.pass_time(60)
    assert field.leaders == ["replica-1"]
    assert first.election.holder == "replica-1"


def test_orderly_end_hands_over_at_once() -> None:
    """A rolling update of the Deployment must not leave pods without a reconciler for 15 s."""
    field = Field()
    first, second = field.add(), field.add()
    field.pass_time(30)
    first.election.release()
    first.running = False
    assert not first.election.may_act()
    field.pass_time(RETRY * JITTER)
    assert second.election.may_act()


def test_leader_that_ends_after_an_annotation_was_written_is_followed_at_once() -> None:
    """The loop's last cycle keeps what it knows on the Lease, and then the process ends."""
    field = Field()
    first, second = field.add(), field.add()
    field.pass_time(30)
    field.lease.annotate("fleet-reconciler.io/fleet-state", "new")
    first.election.release()
    first.running = False
    field.pass_time(RETRY * JITTER)
    assert second.election.may_act()
    assert field.lease.annotations == {"fleet-reconciler.io/fleet-state": "new"}


def test_release_of_a_lease_that_another_holds_changes_nothing() -> None:
    """A late farewell would throw the new leader out."""
    field = Field()
    first, _ = field.add(), field.add()
    field.pass_time(30)
    first.running = False
    field.pass_time(60)
    before = field.lease.record
    first.election.release()
    assert field.lease.record == before


def test_annotations_written_on_the_lease_cost_the_leader_nothing() -> None:
    """The loop keeps fleets' cool-offs there, which changes the version under the leader."""
    field = Field()
    first = field.add()
    field.pass_time(3)
    for turn in range(20):
        field.lease.annotate("fleet-reconciler.io/fleet-state", str(turn))
        field.pass_time(RETRY)
        assert first.election.may_act()
    assert field.lease.annotations == {"fleet-reconciler.io/fleet-state": "19"}


@pytest.mark.parametrize("annotated", [False, True])
def test_lease_that_somebody_deleted_is_made_again_by_its_holder(annotated: bool) -> None:
    """A standby that took it at once acted beside the leader, until that one renewed."""
    field = Field()
    field.add()
    field.add()
    field.pass_time(30)
    for _ in range(20):
        field.pass_time(0.7)
        field.lease.record = LeaseRecord(version="1") if annotated else None
        field.pass_time(RETRY * JITTER)
        assert field.leaders == ["replica-0"]
        assert field.lease.record is not None
        assert field.lease.record.holder == "replica-0"


@pytest.mark.parametrize("annotated", [False, True])
def test_deleted_lease_of_a_dead_leader_is_taken_after_the_lease_duration(annotated: bool) -> None:
    """It may be cut off only, and act until its deadline."""
    field = Field()
    first, second = field.add(), field.add()
    field.pass_time(30)
    first.running = False
    died_at = field.time.seconds
    field.lease.record = LeaseRecord(version="1") if annotated else None
    while not second.election.may_act():
        field.pass_time(0.1)
    assert LEASE - RETRY <= field.time.seconds - died_at <= LEASE + RETRY * JITTER


def test_lease_without_a_holder_is_taken_at_once() -> None:
    """An older version made it for its annotations alone."""
    field = Field()
    first = field.add()
    first.election.step()
    first.election.release()
    second = field.add()
    second.step()
    assert second.election.may_act()


@pytest.mark.parametrize("skew_seconds", [-86_400.0, 86_400.0])
def test_wrong_wall_clock_matters_to_nobody(skew_seconds: float) -> None:
    """Candidates that compare clocks depose healthy leaders, or never depose dead ones."""
    field = Field()
    first, second = field.add(wall_skew_seconds=skew_seconds), field.add()
    field.pass_time(120)
    assert field.leaders == ["replica-0"]
    first.running = False
    field.pass_time(LEASE + RETRY * JITTER)
    assert second.election.may_act()


def test_lease_of_68_years_is_taken_after_our_own_lease_duration() -> None:
    """One write with the longest duration that the API takes would stop every replica."""
    field = Field()
    second = field.add()
    field.lease.write(LeaseRecord(holder="someone", duration_seconds=2147483647))
    field.pass_time(LEASE - RETRY * JITTER)
    assert field.leaders == []
    field.pass_time(2 * RETRY * JITTER)
    assert field.leaders == [second.election.identity]


def test_time_that_another_wrote_counts_for_nothing() -> None:
    """A Lease renewed in the year 2100 by its own word is one that nobody renews."""
    field = Field()
    second = field.add()
    later = datetime(2100, 1, 1, tzinfo=UTC)
    field.lease.write(LeaseRecord(holder="someone", duration_seconds=15, renewed_at=later))
    field.pass_time(LEASE + RETRY * JITTER)
    assert field.leaders == [second.election.identity]


def test_restarted_container_takes_the_lease_of_its_pod_back_at_once() -> None:
    """Restarts less than a lease duration apart made no progress at all."""
    field = Field()
    first = field.add(identity="pod-a_uid")
    field.add(identity="pod-b_uid")
    field.pass_time(30)
    for _ in range(5):
        first.running = False
        field.pass_time(3.0)
        first = field.replace_process(first)
        first.step()
        assert first.election.may_act()
    assert field.lease.record is not None
    assert field.lease.record.transitions == 0


@pytest.mark.parametrize("times", [(10, 10, 2), (15, 2.4, 2), (15, 10, 0), (5, 10, 2)])
def test_times_with_which_two_could_act_are_refused(times: tuple[float, float, float]) -> None:
    """A shorter lease than the deadline is a way to two leaders."""
    lease, renew, retry = times
    with pytest.raises(UsageError, match="lease_duration > renew_deadline"):
        ElectionTiming(
            lease_duration_seconds=lease, renew_deadline_seconds=renew, retry_period_seconds=retry
        )
