"""What the reader of the interruption queue holds, and how it keeps it hidden from others."""

import json

import pytest

from reconciler.adapters.aws import SqsNotices
from reconciler.adapters.aws.notices import BATCH, HELD_MAX, PARALLEL
from tests.unit.adapters.aws.queues import (
    LIFECYCLE_ACTION,
    ONE,
    OTHER,
    Sqs,
    acted,
)


def test_full_reader_receives_nothing_more() -> None:
    """A leader that cannot act would hold every message of a week, hidden and in memory."""
    sqs = Sqs()
    sqs.send(ONE, HELD_MAX + 200)
    with sqs.reader() as reader:
        acted(reader, lambda: len(reader.held()) >= HELD_MAX)
        looks = sqs.looks
        acted(reader, lambda: sqs.looks > looks + 20)
        assert len(reader.held()) < HELD_MAX + PARALLEL * BATCH
    assert not sqs.told[0].full
    assert any(arrival.full for arrival in sqs.told), (
        "the messages behind them would wait until the loop's pause is over"
    )


def test_messages_of_several_queues_are_extended_in_their_own() -> None:
    """After a change of the queue's address those of the old one would come again."""
    sqs = Sqs()
    sqs.send(ONE, 2)
    sqs.send(OTHER, 3)
    with sqs.reader() as reader:
        acted(reader, lambda: len(reader.held()) == 2)
        sqs.url = OTHER
        acted(reader, lambda: len(reader.held()) == 5)
        sqs.seconds = 13.0
        acted(reader, lambda: len([r for _, some in sqs.extended for r in some]) >= 5)
    assert sorted(sqs.extended) == sorted(
        [(ONE, [f"{ONE} {n}" for n in range(2)]), (OTHER, [f"{OTHER} {n}" for n in range(3)])]
    )


def test_messages_of_a_queue_that_is_gone_do_not_hold_up_the_new_one() -> None:
    """The reader would pause for longer each time, and interruptions come too late."""
    sqs = Sqs()
    sqs.send(ONE, 2)
    sqs.send(OTHER, 3)
    with sqs.reader() as reader:
        acted(reader, lambda: len(reader.held()) == 2)
        sqs.url = OTHER
        acted(reader, lambda: len(reader.held()) == 5)
        sqs.gone.add(ONE)
        sqs.seconds = 13.0
        acted(reader, lambda: len(reader.held()) == 3)
        sqs.seconds = 26.0
        acted(reader, lambda: len(sqs.extended) >= 3)
    assert [url for url, _ in sqs.extended].count(ONE) == 1


def test_messages_received_with_a_strange_one_are_held() -> None:
    """One message must not keep the interruption that came with it from being acted on."""
    strange = {
        "source": "aws.health",
        "detail-type": "AWS Health Event",
        "time": "2026-01-31T12:00:00Z",
        "detail": {
            "service": "EC2",
            "eventTypeCategory": "scheduledChange",
            "startTime": "Fri, 31 Dec 9999 23:59:59 -0100",
            "eventTypeCode": "X",
            "affectedEntities": [{"entityValue": "i-0123456789"}],
        },
    }
    spot = {
        "source": "aws.ec2",
        "detail-type": "EC2 Spot Instance Interruption Warning",
        "time": "2026-01-31T12:00:00Z",
        "detail": {"instance-id": "i-1", "instance-action": "terminate"},
    }
    sqs = Sqs()
    sqs.put(ONE, Body="without an id")
    sqs.put(ONE, MessageId="without a receipt", Body="")
    sqs.put(ONE, MessageId="strange", ReceiptHandle="s", Body=json.dumps(strange))
    sqs.put(ONE, MessageId="spot", ReceiptHandle="r", Body=json.dumps(spot))
    with sqs.reader() as reader:
        acted(reader, lambda: len(reader.held()) == 2)
        kinds = {notice.message: notice.kind for notice in reader.held()}
    assert kinds == {"spot": "spot-interruption", "strange": "unreadable"}
    assert {notice.message for some in sqs.told for notice in some.notices} == {"spot", "strange"}


def test_lifecycle_action_outlives_its_message() -> None:
    """A node that takes longer to drain than the queue keeps messages would never be let go."""
    sqs = Sqs()
    body = json.dumps(LIFECYCLE_ACTION)
    sqs.put(ONE, MessageId="action", ReceiptHandle="old", Body=body)
    with sqs.reader() as reader:
        acted(reader, lambda: len(reader.held()) == 1)
        sqs.expired.add("old")
        sqs.seconds = 13.0
        acted(reader, lambda: len(sqs.extended) >= 1)
        sqs.seconds = 26.0
        acted(reader, lambda: "heartbeat" in sqs.asked_of_hook)
        looks = sqs.looks
        acted(reader, lambda: sqs.looks > looks + 2)
        assert [notice.message for notice in reader.held()] == ["action"]
        assert len(sqs.extended) == 1, "the time of a message that is gone is extended again"
        done = {notice.message for notice in reader.held()}
        reader.settle(done, emptied=done)
        acted(reader, lambda: sqs.asked_of_hook == ["heartbeat", "complete"])
        assert not reader.held()


def test_lifecycle_action_without_message_is_completed_again_after_a_refusal() -> None:
    """The queue does not bring it again, and the instance would stay until its hook times out."""
    sqs = Sqs()
    sqs.put(ONE, MessageId="action", ReceiptHandle="old", Body=json.dumps(LIFECYCLE_ACTION))
    with sqs.reader() as reader:
        acted(reader, lambda: len(reader.held()) == 1)
        sqs.gone.add(ONE)
        sqs.hook_refuses = True
        sqs.seconds = 13.0
        acted(reader, lambda: len(sqs.extended) >= 1)
        done = {notice.message for notice in reader.held()}
        reader.settle(done, emptied=done)
        acted(reader, lambda: sqs.asked_of_hook == ["complete"] and len(reader.held()) == 1)


def test_queue_that_is_not_read_any_more_is_no_trouble() -> None:
    """The alert of a queue that was taken out of the config could not be cleared."""
    sqs = Sqs()
    sqs.gone.add(ONE)
    with sqs.reader() as reader:
        acted(reader, lambda: len(sqs.troubles) == 1)
        sqs.url = ""
        acted(reader, lambda: sqs.troubles == ["ReceiveMessage", ""])


def test_replica_that_stands_by_has_no_trouble_with_the_queue() -> None:
    """The leader that follows reads it, while this one would say for ever that nobody can."""
    sqs = Sqs()
    sqs.gone.add(ONE)
    with sqs.reader() as reader:
        acted(reader, lambda: len(sqs.troubles) == 1)
        sqs.leads = False
        acted(reader, lambda: sqs.troubles == ["ReceiveMessage", ""])


def test_pauses_begin_anew_with_another_queue_and_another_lead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first failure after hours without the lead was followed by a minute's pause."""
    pauses: list[int] = []
    monkeypatch.setattr(SqsNotices, "_pause", lambda _, failures: pauses.append(failures))
    sqs = Sqs()
    sqs.gone |= {ONE, OTHER}
    with sqs.reader() as reader:
        acted(reader, lambda: len(pauses) > 3)
        sqs.leads = False
        acted(reader, lambda: sqs.troubles[-1:] == [""])
        pauses.clear()
        sqs.leads = True
        acted(reader, lambda: len(pauses) > 3)
        assert pauses[0] == 1
        sqs.url = OTHER
        acted(reader, lambda: pauses[1:].count(1) == 1)


def test_call_under_way_when_the_lead_is_lost_is_no_trouble() -> None:
    """It is refused, which this replica would tell of for as long as it does not lead again."""
    sqs = Sqs()
    sqs.put(ONE, MessageId="action", ReceiptHandle="r", Body=json.dumps(LIFECYCLE_ACTION))
    with sqs.reader() as reader:
        acted(reader, lambda: len(reader.held()) == 1)
        sqs.hook_refuses, sqs.leads = True, False
        done = {notice.message for notice in reader.held()}
        reader.settle(done, emptied=done)
        acted(reader, lambda: sqs.asked_of_hook == ["complete"])
        looks = sqs.looks
        acted(reader, lambda: sqs.looks > looks + 2)
    assert sqs.troubles == []


def test_second_queue_that_cannot_be_read_is_reported() -> None:
    """A fixed address with another fault in it would look as if it had worked."""
    sqs = Sqs()
    sqs.gone |= {ONE, OTHER}
    with sqs.reader() as reader:
        acted(reader, lambda: len(sqs.troubles) == 1)
        sqs.url = OTHER
        acted(reader, lambda: sqs.troubles == ["ReceiveMessage", "", "ReceiveMessage"])


def test_call_that_fails_is_reported_until_it_works_again() -> None:
    """Without the right to delete, the alert's five minutes began anew with every answer."""
    sqs = Sqs()
    sqs.may_delete = False
    sqs.send(ONE, 1)
    with sqs.reader() as reader:
        acted(reader, lambda: len(reader.held()) == 1)
        reader.settle({notice.message for notice in reader.held()})
        acted(reader, lambda: sqs.troubles == ["DeleteMessage"])
        sqs.send(ONE, 1)
        acted(reader, lambda: len(reader.held()) == 1)
        looks = sqs.looks
        acted(reader, lambda: sqs.looks > looks + 2)
        assert sqs.troubles == ["DeleteMessage"], "messages are received all the same"
        sqs.may_delete = True
        reader.settle({notice.message for notice in reader.held()})
        acted(reader, lambda: sqs.troubles == ["DeleteMessage", ""])
