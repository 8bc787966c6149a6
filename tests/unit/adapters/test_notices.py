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
from tests.waiting import until

ONE, OTHER = "https://sqs.us-west-2.amazonaws.com/1/one", "https://sqs.us-west-2.amazonaws.com/1/b"
LOOK_SECONDS = 0.05


class Sqs:
    """Two queues, and what is asked of them."""

    def __init__(self) -> None:
        self.url = ONE
        self.seconds = 0.0
        self.looks = 0
        """How often the reader asked for the queue's address."""
        self.extended: list[tuple[str, list[str]]] = []
        """Addresses and receipts of calls that extend the time of messages."""
        self.gone: set[str] = set()
        """Queues that were deleted."""
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
        return {}

    def sqs(self, _region: Region) -> "Sqs":
        """The client."""
        return self

    @contextmanager
    def reader(self) -> Iterator[SqsNotices]:
        """Reads the queues."""
        made = SqsNotices(
            self.address,
            cast("Clients", self),
            home=Region("us-west-2"),
            may_receive=lambda: True,
            arrived=lambda: None,
            troubled=lambda _error: None,
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
