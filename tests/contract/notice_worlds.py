"""Queues that the NoticeQueue port's contract is checked on: in memory, and SQS over HTTP."""

import json
import threading
from abc import ABC, abstractmethod
from functools import partial
from itertools import count
from typing import Any

import boto3

from reconciler.adapters.aws import Clients, SqsNotices
from reconciler.adapters.memory import MemoryNotices, MemoryWorld
from reconciler.model.errors import PortError
from reconciler.model.ids import Region
from reconciler.model.notices import MessageId, Notice
from reconciler.ports.notices import NoticeQueue
from reconciler.records.aws.events import decode_message
from tests.waiting import until

HOME = Region("us-west-2")
_NUMBERS = count(1)


def warning(instance: str) -> str:
    """EventBridge's event of a spot interruption."""
    return json.dumps(
        {
            "source": "aws.ec2",
            "detail-type": "EC2 Spot Instance Interruption Warning",
            "time": "2026-01-31T12:00:00Z",
            "detail": {"instance-id": instance, "instance-action": "terminate"},
        }
    )


def _decoded(body: str, message: MessageId) -> tuple[Notice, ...]:
    return decode_message(message, body)


class NoticeWorld(ABC):
    """A queue, and those who read it."""

    @abstractmethod
    def send(self, *bodies: str) -> None:
        """Someone sends messages."""

    @abstractmethod
    def reader(self) -> NoticeQueue:
        """A new process that reads the queue."""

    @abstractmethod
    def kill(self, reader: NoticeQueue) -> None:
        """Its process is killed."""

    @abstractmethod
    def visible_again(self) -> None:
        """Let so much time pass that what was received and not deleted can be received again."""

    @abstractmethod
    def waiting(self) -> int:
        """How many messages nobody has deleted."""

    @abstractmethod
    def close(self) -> None:
        """Let go of everything."""

    def received(self, reader: NoticeQueue, number: int) -> tuple[Notice, ...]:
        """What a reader holds, once it is so much."""
        return until(
            lambda: f"{number} notices; held: {reader.held()}",
            lambda: found if len(found := reader.held()) >= number else None,
            seconds=120,
        )

    def left(self, number: int) -> None:
        """Wait until so many messages are left in the queue."""
        until(lambda: f"{number} left", lambda: self.waiting() == number or None, seconds=120)


class InMemory(NoticeWorld):
    """The twin that simulations run on."""

    def __init__(self) -> None:
        self._world = MemoryWorld()

    def send(self, *bodies: str) -> None:
        """See NoticeWorld."""
        for body in bodies:
            self._world.messages.send(partial(_decoded, body))

    def reader(self) -> NoticeQueue:
        """See NoticeWorld."""
        return MemoryNotices(self._world.messages, self._world.log)

    def kill(self, reader: NoticeQueue) -> None:
        """See NoticeWorld."""

    def visible_again(self) -> None:
        """See NoticeWorld."""
        self._world.advance(31)

    def waiting(self) -> int:
        """See NoticeWorld."""
        return len(self._world.messages.waiting)

    def close(self) -> None:
        """See NoticeWorld."""


class OverHttp(NoticeWorld):
    """The real adapter, boto3 and all, against the emulated SQS."""

    def __init__(self) -> None:
        self.sqs: Any = boto3.Session(region_name=HOME).client("sqs")
        self.url: str = self.sqs.create_queue(QueueName=f"notices-{next(_NUMBERS)}")["QueueUrl"]
        self.leads = True
        self.arrived = threading.Event()
        self.troubles: list[PortError | None] = []
        self._made: list[tuple[SqsNotices, Clients]] = []

    def send(self, *bodies: str) -> None:
        """See NoticeWorld."""
        for start in range(0, len(bodies), 10):
            entries = [
                {"Id": str(n), "MessageBody": body}
                for n, body in enumerate(bodies[start : start + 10])
            ]
            self.sqs.send_message_batch(QueueUrl=self.url, Entries=entries)

    def reader(self) -> SqsNotices:
        """See NoticeWorld."""
        clients = Clients(fence=lambda: self.leads)
        made = SqsNotices(
            lambda: self.url,
            clients,
            home=HOME,
            may_receive=lambda: self.leads,
            arrived=lambda _: self.arrived.set(),
            troubled=self.troubles.append,
        )
        self._made.append((made, clients))
        return made

    def kill(self, reader: NoticeQueue) -> None:
        """See NoticeWorld."""
        assert isinstance(reader, SqsNotices)
        reader.close()

    def visible_again(self) -> None:
        """Make what is in flight visible by hand: SQS's own clock cannot be moved."""
        # Receipt handles are the readers' own; the emulator keeps all messages of the queue.
        from moto.sqs.models import sqs_backends  # noqa: PLC0415 - only here

        for account in sqs_backends.values():
            for queue in account[HOME].queues.values():
                for message in queue._messages:
                    message.change_visibility(0)

    def waiting(self) -> int:
        """See NoticeWorld."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        found = self.sqs.get_queue_attributes(QueueUrl=self.url, AttributeNames=names)
        return sum(int(found["Attributes"][name]) for name in names)

    def close(self) -> None:
        """See NoticeWorld."""
        for made, clients in self._made:
            made.close()
            clients.close()
        self.sqs.close()


def messages_of(notices: tuple[Notice, ...]) -> set[MessageId]:
    """The messages that hold these notices."""
    return {notice.message for notice in notices}
