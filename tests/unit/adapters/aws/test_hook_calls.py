"""Calls to lifecycle hooks, beside the messages of the queue that are received meanwhile."""

import json

import pytest

from reconciler.adapters.aws import hook_calls
from reconciler.adapters.aws.hook_calls import HEARTBEAT_SECONDS, WAITING_MAX
from reconciler.model.notices import MessageId
from tests.unit.adapters.aws.queues import (
    LIFECYCLE_ACTION,
    ONE,
    Sqs,
    acted,
    put_actions,
)


def test_heartbeats_do_not_hold_up_a_notice() -> None:
    """With two hundred draining instances notices came a minute late, and some never in time."""
    sqs = Sqs()
    put_actions(sqs, 20)
    with sqs.reader() as reader:
        acted(reader, lambda: len(reader.held()) == 20)
        sqs.hooks_answer.clear()
        sqs.seconds = 26.0
        acted(reader, lambda: len(sqs.extended) == 2)
        sqs.put(ONE, MessageId="spot", ReceiptHandle="spot", Body="")
        acted(reader, lambda: len(reader.held()) == 21)
        assert sqs.asked_of_hook == []


def test_heartbeats_for_many_instances_take_turns() -> None:
    """Those that were reported last were reported again, and others' hooks timed out."""
    sqs = Sqs()
    put_actions(sqs, WAITING_MAX + 30)
    with sqs.reader() as reader:
        acted(reader, lambda: len(reader.held()) == WAITING_MAX + 30)
        sqs.hooks_answer.clear()
        sqs.seconds = HEARTBEAT_SECONDS
        acted(reader, lambda: bool(sqs.extended))
        sqs.hooks_answer.set()
        acted(reader, lambda: len(sqs.beaten) == WAITING_MAX + 30)
        assert len(set(sqs.beaten)) == WAITING_MAX + 30


def test_completions_do_not_hold_up_a_notice() -> None:
    """A group that ended a hundred empty instances kept notices in the queue for a minute."""
    sqs = Sqs()
    put_actions(sqs, 20)
    with sqs.reader() as reader:
        acted(reader, lambda: len(reader.held()) == 20)
        sqs.hooks_answer.clear()
        done = {notice.message for notice in reader.held()}
        reader.settle(done, emptied=done)
        assert not reader.held()
        sqs.send(ONE, 30)
        acted(reader, lambda: len(reader.held()) == 30)
        reader.settle({notice.message for notice in reader.held()})
        acted(reader, lambda: len(sqs.deleted) == 30)
        sqs.hooks_answer.set()
        acted(reader, lambda: len(sqs.deleted) == 50)


def test_message_stays_hidden_until_its_hook_is_completed() -> None:
    """It came again after thirty seconds and was completed once more, behind all others."""
    sqs = Sqs()
    put_actions(sqs, 1)
    with sqs.reader() as reader:
        acted(reader, lambda: len(reader.held()) == 1)
        sqs.hooks_answer.clear()
        reader.settle({MessageId("action-0")}, emptied={MessageId("action-0")})
        sqs.seconds = 13.0
        acted(reader, lambda: sqs.extended == [(ONE, ["action-0"])])
        sqs.put(ONE, MessageId="action-0", ReceiptHandle="new", Body=json.dumps(LIFECYCLE_ACTION))
        looks, told = sqs.looks, len(sqs.told)
        acted(reader, lambda: sqs.looks > looks + 2)
        assert (len(sqs.told), reader.held()) == (told, ())
        sqs.hooks_answer.set()
        acted(reader, lambda: sqs.deleted == ["new"])
    assert sqs.asked_of_hook == ["complete"]


def test_bug_in_a_completion_holds_no_message_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its instance got no heartbeat any more and was not completed again either."""

    def broken(*_: object) -> None:
        raise RuntimeError("no such thing")

    monkeypatch.setattr(hook_calls, "complete_action", broken)
    sqs = Sqs()
    put_actions(sqs, 1)
    with sqs.reader() as reader:
        acted(reader, lambda: len(reader.held()) == 1)
        reader.settle({MessageId("action-0")}, emptied={MessageId("action-0")})
        acted(reader, lambda: sqs.troubles == ["CompleteLifecycleAction"])
        assert len(reader.held()) == 1
