"""Two interruption queues and the lifecycle hooks of groups, for tests of their reader."""

import json
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, cast

from botocore.exceptions import ClientError

from reconciler.adapters.aws import SqsNotices
from reconciler.adapters.aws.clients import Clients
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
        self.beaten: list[str] = []
        """Tokens of the lifecycle actions that got a heartbeat."""
        self.hook_refuses = False
        self.hooks_answer = threading.Event()
        """Cleared: Auto Scaling lets no call through, as when it throttles."""
        self.hooks_answer.set()
        self.deleted: list[str] = []
        """Receipts of messages that were deleted."""
        self.may_delete = True
        self.told: list[Arrival] = []
        """What the reader reported, call by call."""
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
        receipts = [entry["ReceiptHandle"] for entry in arguments["Entries"]]
        self.extended.append((arguments["QueueUrl"], receipts))
        if arguments["QueueUrl"] in self.gone:
            error = {"Error": {"Code": "AWS.SimpleQueueService.NonExistentQueue", "Message": "no"}}
            raise ClientError(error, "ChangeMessageVisibilityBatch")  # type: ignore[arg-type]
        failed = [e["Id"] for e in arguments["Entries"] if e["ReceiptHandle"] in self.expired]
        return {"Failed": [{"Id": each, "Code": "InvalidParameterValue"} for each in failed]}

    def delete_message_batch(self, **arguments: Any) -> dict[str, Any]:
        """A message that is gone is deleted."""
        if not self.may_delete:
            error = {"Error": {"Code": "AccessDenied", "Message": "no"}}
            raise ClientError(error, "DeleteMessageBatch")  # type: ignore[arg-type]
        self.deleted += [entry["ReceiptHandle"] for entry in arguments["Entries"]]
        return {}

    def record_lifecycle_action_heartbeat(self, **arguments: Any) -> None:
        """Note it."""
        self._ask_hook("heartbeat")
        self.beaten.append(arguments["LifecycleActionToken"])

    def complete_lifecycle_action(self, **_arguments: Any) -> None:
        """Note it."""
        self._ask_hook("complete")
        if self.hook_refuses:
            error = {"Error": {"Code": "AccessDenied", "Message": "no"}}
            raise ClientError(error, "CompleteLifecycleAction")  # type: ignore[arg-type]

    def _ask_hook(self, what: str) -> None:
        assert self.hooks_answer.wait(60)
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
            self.hooks_answer.set()
            made.close()


def acted(reader: SqsNotices, done: Callable[[], bool]) -> None:
    """Cycles act until something is so."""

    def looked() -> bool | None:
        reader.settle([])
        return done() or None

    until("done", looked)


LIFECYCLE_DETAIL = {
    "AutoScalingGroupName": "workers",
    "LifecycleHookName": "drain",
    "LifecycleActionToken": "0" * 36,
    "EC2InstanceId": "i-0123456789abcdef0",
    "LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING",
}
LIFECYCLE_ACTION = {
    "source": "aws.autoscaling",
    "detail-type": "EC2 Instance-terminate Lifecycle Action",
    "region": "us-west-2",
    "time": "2026-01-31T12:00:00Z",
    "detail": LIFECYCLE_DETAIL,
}


def put_actions(sqs: Sqs, number: int) -> None:
    """Have the queue hold so many lifecycle actions, `action-0` and so on."""
    for n in range(number):
        name = f"action-{n}"
        detail = {**LIFECYCLE_DETAIL, "LifecycleActionToken": f"{n:036}"}
        body = json.dumps({**LIFECYCLE_ACTION, "detail": detail})
        sqs.put(ONE, MessageId=name, ReceiptHandle=name, Body=body)
