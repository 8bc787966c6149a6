"""What the second loop slows down when something fails, and what it does not."""

from reconciler.adapters.memory import ManualClock
from reconciler.loops.second_loop.pace import GitopsPace
from reconciler.ports.repository import CommitId

TIP, NEXT = CommitId("a" * 40), CommitId("b" * 40)


def test_failing_turn_is_taken_later_each_time_and_fetches_are_not() -> None:
    """The capacity loop's config comes with the fetches."""
    clock = ManualClock()
    pace = GitopsPace(clock, 30, 600)
    waited: list[float] = []
    for _ in range(6):
        pace.failed(TIP)
        assert not pace.is_news(TIP)
        assert pace.is_news(NEXT)
        before = clock.monotonic_seconds()
        while not pace.turn_is_due():
            assert pace.pause_seconds() == 30
            clock.wait_seconds(pace.pause_seconds())
        waited.append(clock.monotonic_seconds() - before)
    assert waited == [60, 120, 240, 480, 600, 600]
    pace.turned()
    pace.failed(TIP)
    clock.wait_seconds(60)
    assert pace.turn_is_due()


def test_fetch_that_fails_is_tried_later_each_time() -> None:
    """A remote that is down is not asked more often for being followed."""
    pace = GitopsPace(ManualClock(), 30, 600)
    pauses: list[float] = []
    for _ in range(6):
        pace.failed(None)
        pauses.append(pace.pause_seconds())
    assert pauses == [60, 120, 240, 480, 600, 600]
    pace.fetched()
    assert pace.pause_seconds() == 30


def test_polls_that_are_further_apart_than_the_longest_pause_stay_so() -> None:
    """Who polls once an hour would be polled every ten minutes by a failure."""
    pace = GitopsPace(ManualClock(), 3600, 600)
    pace.failed(None)
    assert pace.pause_seconds() == 3600


def test_who_wakes_the_loop_ends_the_pause_of_a_failing_turn() -> None:
    """A replica that begins to lead, or a webhook, asks for a turn now."""
    pace = GitopsPace(ManualClock(), 30, 600)
    pace.failed(TIP)
    assert not pace.turn_is_due()
    pace.make_due()
    assert pace.turn_is_due()
