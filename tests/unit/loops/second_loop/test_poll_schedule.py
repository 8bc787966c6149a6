"""What the second loop slows down when something fails, and what it does not."""

from reconciler.adapters.memory import ManualClock
from reconciler.loops.second_loop.poll_schedule import PollSchedule
from reconciler.ports.repository import CommitId

TIP, NEXT = CommitId("a" * 40), CommitId("b" * 40)


def test_failing_turn_is_taken_later_each_time_and_fetches_are_not() -> None:
    """The capacity loop's config comes with the fetches."""
    clock = ManualClock()
    schedule = PollSchedule(clock, 30, 600)
    waited: list[float] = []
    for _ in range(6):
        schedule.failed(TIP)
        assert not schedule.is_news(TIP)
        assert schedule.is_news(NEXT)
        before = clock.monotonic_seconds()
        while not schedule.turn_is_due():
            assert schedule.pause_seconds() == 30
            clock.wait_seconds(schedule.pause_seconds())
        waited.append(clock.monotonic_seconds() - before)
    assert waited == [60, 120, 240, 480, 600, 600]
    schedule.turned()
    schedule.failed(TIP)
    clock.wait_seconds(60)
    assert schedule.turn_is_due()


def test_fetch_that_fails_is_tried_later_each_time() -> None:
    """A remote that is down is not asked more often for being followed."""
    schedule = PollSchedule(ManualClock(), 30, 600)
    pauses: list[float] = []
    for _ in range(6):
        schedule.failed(None)
        pauses.append(schedule.pause_seconds())
    assert pauses == [60, 120, 240, 480, 600, 600]
    schedule.fetched()
    assert schedule.pause_seconds() == 30


def test_polls_that_are_further_apart_than_the_longest_pause_stay_so() -> None:
    """Who polls once an hour would be polled every ten minutes by a failure."""
    schedule = PollSchedule(ManualClock(), 3600, 600)
    schedule.failed(None)
    assert schedule.pause_seconds() == 3600


def test_who_wakes_the_loop_ends_the_pause_of_a_failing_turn() -> None:
    """A replica that begins to lead, or a webhook, asks for a turn now."""
    schedule = PollSchedule(ManualClock(), 30, 600)
    schedule.failed(TIP)
    assert not schedule.turn_is_due()
    schedule.make_due()
    assert schedule.turn_is_due()
