"""What becomes of Events before they are written: counted, limited, bounded."""

from dataclasses import replace

from reconciler.adapters.kubernetes.event_log import (
    OBJECT_BUCKET,
    OBJECTS_MAX,
    QUEUE_MAX,
    REPEAT_SECONDS,
    EventLog,
    RecordedEvent,
)
from reconciler.adapters.memory import ManualClock
from reconciler.ports.object_events import ObjectEvent

EVENT = ObjectEvent(
    kind="Pod", namespace="web", name="api-1", uid="u", reason="TriggeredScaleUp", message="m"
)


class Scene:
    """A log over a clock that tests move."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.log = EventLog(self.clock.now, self.clock.monotonic_seconds)

    def written(self) -> list[RecordedEvent]:
        """Everything that is due now."""
        found = []
        while (told := self.log.next()) is not None:
            found.append(told)
        return found


def test_equal_events_are_counted_on_one_and_written_again_now_and_then() -> None:
    """A pod that stays pending for a day would bury its describe under the same line."""
    scene = Scene()
    for _ in range(10):
        scene.log.add(EVENT)
    (told,) = scene.written()
    assert told.count == 10
    scene.clock.advance(REPEAT_SECONDS - 1)
    scene.log.add(EVENT)
    assert scene.written() == []
    scene.clock.advance(1)
    scene.log.add(EVENT)
    (again,) = scene.written()
    assert again is told
    assert again.count == 12
    assert again.last_at == scene.clock.now()


def test_message_that_only_tells_the_time_left_is_no_new_event() -> None:
    """`7m to go`, `6m to go`, ... are one reason, and the last wording is the one shown."""
    scene = Scene()
    scene.log.add(replace(EVENT, message="7m to go", about="idle"))
    scene.log.add(replace(EVENT, message="6m to go", about="idle"))
    (told,) = scene.written()
    assert told.event.message == "6m to go"


def test_pod_of_the_same_name_starts_afresh() -> None:
    """A StatefulSet's next pod has another history."""
    scene = Scene()
    scene.log.add(EVENT)
    scene.log.add(replace(EVENT, uid="v"))
    assert len(scene.written()) == 2


def test_chatty_object_is_cut_off_and_others_are_not() -> None:
    """One flapping node must not fill the cluster's Events."""
    scene = Scene()
    taken = sum(scene.log.add(replace(EVENT, message=str(n))) for n in range(100))
    assert taken == OBJECT_BUCKET.capacity
    assert scene.log.add(replace(EVENT, name="api-2"))
    scene.clock.advance(300)
    assert scene.log.add(replace(EVENT, message="later"))


def test_queue_and_memory_stay_bounded_in_a_storm() -> None:
    """30,000 pods that fit nowhere are no reason to run out of memory."""
    scene = Scene()
    taken = sum(scene.log.add(replace(EVENT, name=f"pod-{n}")) for n in range(3 * OBJECTS_MAX))
    assert taken == QUEUE_MAX == len(scene.log)
    for n in range(3 * OBJECTS_MAX):
        scene.log.add(replace(EVENT, name=f"pod-{n}"))
        scene.written()
    assert len(scene.log) == 0


def test_event_that_could_not_be_written_is_reported_again() -> None:
    """An API server that was away for a minute would otherwise hide the reason for five."""
    scene = Scene()
    scene.log.add(EVENT)
    (told,) = scene.written()
    scene.log.forget(told)
    scene.log.add(EVENT)
    assert len(scene.written()) == 1
