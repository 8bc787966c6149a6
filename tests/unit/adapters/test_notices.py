"""What the reader of the interruption queue holds, and how it keeps it hidden from others."""

import json
import queue
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, cast

from botocore.exceptions import ClientError

from reconciler.adapters.aws import SqsNotices
from reconciler.adapters.aws.clients import Clients
from reconciler.adapters.aws.notices import BATCH, HELD_MAX, PARALLEL
from reconciler.model.ids import Region
from reconciler.model.notices import Arrival
from tests.waiting import until

ONE, OTHER = "https://sqs.us-west-2.amazonaws.com/1/one", "https://sqs.us-west-2.amazonaws.com/1/b"
LOOK_SECONDS = 0.05


class Sqs:
    """Two queues, and what is asked of them and of lifecycle hooks."""

    attempts = 1

    def __init__(self) -> None:
        self.url = ONE
        self.seconds = 0.0
        self.looks = 0
        """How often the reader asked for the queue's address."""
        self.extended: list[tuple[str, list[str]]] = []
        """Addresses and receipts of calls that extend the time of messages."""
        self.gone: set[str] = set()
        """Queues that were deleted."""
        self.expired: set[str] = set()
        """Receipts of messages that are older than the queue keeps them."""
        self.asked_of_hook: list[str] = []
        """What was asked of lifecycle hooks, without repeats that follow each other."""
        self.hook_refuses = False
        self.told: list[Arrival] = []
        """What the reader told of, call by call."""
        self.leads = True
        self.troubles: list[str] = []
        """What the reader could not do, and an empty text when that was over."""
        self._waiting: dict[str, queue.Queue[dict[str, str]]] = {
            each: queue.Queue() for each in (ONE, OTHER)
        }
        self._ids = count(1)

    def send(self, url: str, number: int) -> None:
        """Send so many messages; the receipt tells the queue."""
        for n in range(number):
            message = {"MessageId": str(next(self._ids)), "ReceiptHandle": f"{url} {n}", "Body": ""}
            self._waiting[url].put(message)

    def put(self, url: str, **message: str) -> None:
        """Have the queue hold a message of these fields."""
        self._waiting[url].put(message)

    def address(self) -> str:
        """Where the reader reads."""
        self.looks += 1
        return self.url

    def receive_message(self, **arguments: Any) -> dict[str, Any]:
        """Up to ten messages."""
        found: list[dict[str, str]] = []
        if arguments["QueueUrl"] in self.gone:
            error = {"Error": {"Code": "AWS.SimpleQueueService.NonExistentQueue", "Message": "no"}}
            raise ClientError(error, "ReceiveMessage")  # type: ignore[arg-type]
        waiting = self._waiting[arguments["QueueUrl"]]
        while len(found) < arguments["MaxNumberOfMessages"]:
            try:
                found.append(waiting.get(timeout=0 if found else LOOK_SECONDS))
            except queue.Empty:
                break
        return {"Messages": found}

    def change_message_visibility_batch(self, **arguments: Any) -> dict[str, Any]:
        """Note who is extended where."""
        receipts = [each["ReceiptHandle"] for each in arguments["Entries"]]
        self.extended.append((arguments["QueueUrl"], receipts))
        if arguments["QueueUrl"] in self.gone:
            error = {"Error": {"Code": "AWS.SimpleQueueService.NonExistentQueue", "Message": "no"}}
            raise ClientError(error, "ChangeMessageVisibilityBatch")  # type: ignore[arg-type]
        failed = [e["Id"] for e in arguments["Entries"] if e["ReceiptHandle"] in self.expired]
        return {"Failed": [{"Id": each, "Code": "InvalidParameterValue"} for each in failed]}

    def delete_message_batch(self, **_arguments: Any) -> dict[str, Any]:
        """A message that is gone is deleted."""
        return {}

    def record_lifecycle_action_heartbeat(self, **_arguments: Any) -> None:
        """Note it."""
        self._ask_hook("heartbeat")

    def complete_lifecycle_action(self, **_arguments: Any) -> None:
        """Note it."""
        self._ask_hook("complete")
        if self.hook_refuses:
            error = {"Error": {"Code": "AccessDenied", "Message": "no"}}
            raise ClientError(error, "CompleteLifecycleAction")  # type: ignore[arg-type]

    def _ask_hook(self, what: str) -> None:
        if self.asked_of_hook[-1:] != [what]:
            self.asked_of_hook.append(what)

    def sqs(self, _region: Region) -> "Sqs":
        """The client."""
        return self

    def autoscaling(self, _region: Region, *, changing: bool) -> "Sqs":
        """The client for lifecycle hooks."""
        assert changing
        return self

    @contextmanager
    def reader(self) -> Iterator[SqsNotices]:
        """Reads the queues."""
        made = SqsNotices(
            self.address,
            cast("Clients", self),
            home=Region("us-west-2"),
            may_receive=lambda: self.leads,
            arrived=self.told.append,
            troubled=lambda error: self.troubles.append(error.where if error else ""),
            monotonic=lambda: self.seconds,
        )
        try:
            yield made
        finally:
            made.close()


def acted(reader: SqsNotices, done: Callable[[], bool]) -> None:
    """Cycles act until something is so."""

    def looked() -> bool | None:
        reader.settle([])
        return done() or None

    until("done", looked)


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
    assert any(each.full for each in sqs.told), (
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
        kinds = {each.message: each.kind for each in reader.held()}
    assert kinds == {"spot": "spot-interruption", "strange": "unreadable"}
    assert {each.message for some in sqs.told for each in some.notices} == {"spot", "strange"}


LIFECYCLE_ACTION = {
    "source": "aws.autoscaling",
    "detail-type": "EC2 Instance-terminate Lifecycle Action",
    "region": "us-west-2",
    "time": "2026-01-31T12:00:00Z",
    "detail": {
        "AutoScalingGroupName": "workers",
        "LifecycleHookName": "drain",
        "LifecycleActionToken": "0" * 36,
        "EC2InstanceId": "i-0123456789abcdef0",
        "LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING",
    },
}


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
        assert [each.message for each in reader.held()] == ["action"]
        assert len(sqs.extended) == 1, "the time of a message that is gone is extended again"
        done = {each.message for each in reader.held()}
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
        done = {each.message for each in reader.held()}
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


def test_call_under_way_when_the_lead_is_lost_is_no_trouble() -> None:
    """It is refused, which this replica would tell of for as long as it does not lead again."""
    sqs = Sqs()
    sqs.put(ONE, MessageId="action", ReceiptHandle="r", Body=json.dumps(LIFECYCLE_ACTION))
    with sqs.reader() as reader:
        acted(reader, lambda: len(reader.held()) == 1)
        sqs.hook_refuses, sqs.leads = True, False
        done = {each.message for each in reader.held()}
        reader.settle(done, emptied=done)
        acted(reader, lambda: sqs.asked_of_hook == ["complete"])
        looks = sqs.looks
        acted(reader, lambda: sqs.looks > looks + 2)
    assert sqs.troubles == []


def test_second_queue_that_cannot_be_read_is_told_of() -> None:
    """A mended address with another fault in it would look as if it had worked."""
    sqs = Sqs()
    sqs.gone |= {ONE, OTHER}
    with sqs.reader() as reader:
        acted(reader, lambda: len(sqs.troubles) == 1)
        sqs.url = OTHER
        acted(reader, lambda: sqs.troubles == ["ReceiveMessage", "", "ReceiveMessage"])
