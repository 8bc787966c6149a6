"""Repeats of one event for one object."""

from reconciler.telemetry.repeats import OBJECTS_MAX, WINDOW_SECONDS, Repeats


class Time:
    """A clock that tests move."""

    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_repeat_within_the_window_is_no_news() -> None:
    """A pod that cannot be placed would fill the log with one line per cycle."""
    now = Time()
    repeats = Repeats(now)
    assert repeats.is_news("refused", "node-1")
    now.seconds = WINDOW_SECONDS - 1
    assert not repeats.is_news("refused", "node-1")


def test_same_event_of_another_object_is_news() -> None:
    """The second broken node must not hide behind the first."""
    repeats = Repeats(Time())
    assert repeats.is_news("refused", "node-1")
    assert repeats.is_news("refused", "node-2")
    assert repeats.is_news("failed", "node-1")


def test_repeat_after_the_window_is_news_again() -> None:
    """Whoever looks at the last minutes of a log must still see what lasts."""
    now = Time()
    repeats = Repeats(now)
    repeats.is_news("refused", "node-1")
    now.seconds = WINDOW_SECONDS
    assert repeats.is_news("refused", "node-1")
    now.seconds += 1
    assert not repeats.is_news("refused", "node-1")


def test_memory_stays_bounded() -> None:
    """A cluster with ever new pod names must not grow the process."""
    repeats = Repeats(Time())
    for number in range(OBJECTS_MAX + 10):
        repeats.is_news("unplaceable", number)
    assert repeats.is_news("unplaceable", 0)
    assert not repeats.is_news("unplaceable", OBJECTS_MAX)
