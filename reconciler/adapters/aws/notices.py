"""The interruption queue over SQS: long polls in a thread, more parallel calls under load."""

import re
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from reconciler.adapters.aws.clients import Clients
from reconciler.adapters.aws.errors import translated
from reconciler.adapters.aws.hook_calls import HEARTBEAT_SECONDS, HEARTBEATS_MAX, HookCalls
from reconciler.adapters.aws.paging import chunks
from reconciler.adapters.aws.queue_failures import (
    COMPLETE,
    DELETE,
    EXTEND,
    RECEIVE,
    QueueFailures,
)
from reconciler.model.errors import Forbidden, NotFound, PortError, Refused, Unavailable
from reconciler.model.ids import REGION_FORM, Region
from reconciler.model.notices import Arrival, LifecycleAction, MessageId, Notice
from reconciler.records.aws.events import decode_message

BATCH: Final = 10
"""The limit of messages per call. Source: SQS API reference, ReceiveMessage."""
POLL_SECONDS: Final = 10
"""How long a call waits for a first message."""
VISIBILITY_SECONDS: Final = 30
"""A received message becomes visible again after this time, to whoever leads then. While this
replica holds it the time is extended."""
EXTEND_AFTER_SECONDS: Final = 12.0
PARALLEL: Final = 8
"""Calls in flight while one call is not enough."""
HELD_MAX: Final = 5000
"""While this many messages are held none is received: the rest waits in the queue. Calls in flight
may bring a few more."""
BACKOFF_SECONDS: Final = 1.0
BACKOFF_MAX_SECONDS: Final = 60.0
_REGION_OF_HOST: Final = re.compile(
    rf"https?://(?:sqs(?:-fips)?\.({REGION_FORM})|({REGION_FORM})\.queue)\."
)


@dataclass(slots=True, kw_only=True)
class _Held:
    """A message that was received and not settled."""

    notices: tuple[Notice, ...]
    url: str
    handle: str
    seen_at: float
    """When it was received or its time was extended last; monotonic seconds."""
    beat_at: float
    """When the lifecycle hook got its last heartbeat for the instance."""
    beats: int = 0
    completing: bool = False
    """Whether its instance is empty and its hook is being completed: it is held until that is
    done."""
    in_queue: bool = True
    """Whether the queue still has it for this replica: its time can be extended."""

    @property
    def hook(self) -> LifecycleAction | None:
        """Return the lifecycle hook that waits for it."""
        return next((notice.hook for notice in self.notices if notice.hook), None)


class SqsNotices:
    """A NoticeQueue over SQS. Close it to end its threads.

    Args:
        url: Returns the queue's URL; empty: nothing is received.
        clients: Creates the clients; their fence applies to every call.
        home: The region of a queue whose URL names none.
        may_receive: Whether this replica leads. A standby would hide messages from the leader.
        arrived: Called when messages came, from any thread.
        troubled: Called with the error when one of the calls for a queue works no more, and with
            None when all work again, or the queue is not to be read, or is another one.
        monotonic: A clock that never jumps.
    """

    def __init__(
        self,
        url: Callable[[], str],
        clients: Clients,
        *,
        home: Region,
        may_receive: Callable[[], bool],
        arrived: Callable[[Arrival], object],
        troubled: Callable[[PortError | None], None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._url = url
        self._clients = clients
        self._home = home
        self._may_receive = may_receive
        self._arrived = arrived
        self._failures = QueueFailures(troubled, monotonic)
        self._monotonic = monotonic
        self._condition = threading.Condition()
        self._held: dict[MessageId, _Held] = {}
        self._wanted = False
        """Whether a cycle has acted since the queue was last disabled."""
        self._stopped = False
        self._reading = ""
        """The queue that is read."""
        self._hooks = HookCalls(clients)
        self._pool = ThreadPoolExecutor(PARALLEL, thread_name_prefix="interruption-queue")
        threading.Thread(target=self._run, name="interruption-queue", daemon=True).start()

    def held(self) -> tuple[Notice, ...]:
        """See ports.notices."""
        with self._condition:
            held = [each for each in self._held.values() if not each.completing]
            return tuple(sorted(notice for each in held for notice in each.notices))

    def settle(self, messages: Collection[MessageId], emptied: Collection[MessageId] = ()) -> None:
        """See ports.notices."""
        completed: list[tuple[MessageId, LifecycleAction]] = []
        by_url: dict[str, list[_Held]] = {}
        with self._condition:
            if self._stopped:
                return
            for message in messages:
                held = self._held.get(message)
                if held is None or held.completing:
                    continue
                if message in emptied and held.hook is not None:
                    held.completing = True
                    completed.append((message, held.hook))
                else:
                    by_url.setdefault(held.url, []).append(self._held.pop(message))
            self._wanted = True
            self._condition.notify_all()
        for message, hook in completed:
            self._hooks.complete(hook, partial(self._completed, message))
        for url, settled in by_url.items():
            for some in chunks(settled, BATCH):
                self._pool.submit(self._delete, url, some)

    def _completed(self, message: MessageId, error: PortError | None) -> None:
        """Delete the message of an instance that may end; after a failure it is held as before."""
        with self._condition:
            held = self._held.get(message)
            if held is not None and error is None:
                del self._held[message]
            elif held is not None:
                held.completing = False
        if error is not None:
            self._note_failure(COMPLETE, error)
            return
        self._failures.worked(COMPLETE)
        if held is not None:
            self._delete(held.url, [held])

    def close(self) -> None:
        """End all waits; held messages come again to the next leader."""
        with self._condition:
            self._stopped = True
            self._held.clear()
            self._condition.notify_all()
        self._hooks.close()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _run(self) -> None:
        failures = 0
        while self._wait_until_wanted():
            url = self._url()
            if not url or not self._may_receive():
                failures = 0
                self._forget()
                self._failures.end()
                continue
            if url != self._reading:
                failures = 0  # of another queue, and so are the troubles
                self._failures.end()
                self._reading = url
            self._failures.pass_by()
            received = self._tried(RECEIVE, partial(self._receive_all, url))
            extended = self._tried(EXTEND, self._extend)
            failures = 0 if received and extended else failures + 1
            if failures and self._may_receive():
                self._pause(failures)

    def _tried(self, call: str, step: Callable[[], None]) -> bool:
        """Take a step; return whether it succeeded."""
        try:
            step()
        except PortError as error:
            self._note_failure(call, error)
        except Exception as error:  # noqa: BLE001 - a strange answer must not end the thread
            what = f"cannot be read: {type(error).__name__}: {error}"
            self._note_failure(call, Unavailable(call, what))
        else:
            return True
        return False

    def _wait_until_wanted(self) -> bool:
        """Wait until a cycle has acted; False when the queue is closed.

        While the limit is reached this takes a few seconds at most, as held messages must be
        extended.
        """
        with self._condition:
            self._condition.wait_for(lambda: self._wanted or self._stopped)
            full = len(self._held) >= HELD_MAX
            if full and not self._stopped:
                self._wanted = False  # until the next cycle has settled some
                self._condition.wait_for(lambda: self._wanted or self._stopped, POLL_SECONDS)
                self._wanted = True
            return not self._stopped

    def _forget(self) -> None:
        """Receive nothing until a cycle acts as the leader; held messages come again."""
        with self._condition:
            self._wanted = False
            self._held.clear()

    def _receive_all(self, url: str) -> None:
        """Do one long poll; while the queue has more than one call returns, several in parallel."""
        came = self._receive(url, POLL_SECONDS) if self._has_room() else 0
        while came >= BATCH and self._has_room():
            calls = [self._pool.submit(self._receive, url, 0) for _ in range(PARALLEL)]
            wait(calls)
            came = sum(call.result() for call in calls)

    def _has_room(self) -> bool:
        with self._condition:
            return not self._stopped and len(self._held) < HELD_MAX

    def _receive(self, url: str, wait_seconds: int) -> int:
        """Receive and announce up to ten messages; return how many were received.

        Raises:
            PortError: The queue did not answer, or refused.
        """
        with translated(RECEIVE, changing=False):
            answer = self._sqs(url).receive_message(
                QueueUrl=url,
                MaxNumberOfMessages=BATCH,
                WaitTimeSeconds=wait_seconds,
                VisibilityTimeout=VISIBILITY_SECONDS,
            )
        self._failures.worked(RECEIVE)
        messages: Sequence[Any] = answer.get("Messages", ())
        received = {
            MessageId(each["MessageId"]): self._held_of(each, url)
            for each in messages
            if "MessageId" in each and "ReceiptHandle" in each  # it comes again, perhaps complete
        }
        with self._condition:
            for message, each in received.items():
                if (before := self._held.get(message)) is not None:
                    each.beat_at, each.beats = before.beat_at, before.beats
                    each.completing = before.completing
            if not self._stopped:
                self._held.update(received)
            full = len(self._held) >= HELD_MAX
        new = [each for each in received.values() if not each.completing]
        if new:
            notices = tuple(notice for each in new for notice in each.notices)
            self._arrived(Arrival(notices=notices, full=full))
        return len(messages)

    def _held_of(self, message: Mapping[str, Any], url: str) -> _Held:
        """Return the held form of a message that was just received from the queue."""
        return _Held(
            notices=decode_message(MessageId(message["MessageId"]), message.get("Body", "")),
            url=url,
            handle=message["ReceiptHandle"],
            seen_at=self._monotonic(),
            beat_at=self._monotonic(),
        )

    def _extend(self) -> None:
        """Extend the time of messages that are still held, and send heartbeats to hooks.

        Raises:
            PortError: The queue that is read did not answer, or refused; all others were extended.
        """
        first: PortError | None = None
        now = self._monotonic()
        late: dict[str, list[tuple[MessageId, _Held]]] = {}
        with self._condition:
            for message, each in self._held.items():
                if each.in_queue and now - each.seen_at >= EXTEND_AFTER_SECONDS:
                    late.setdefault(each.url, []).append((message, each))
        for url, held in late.items():
            for some in chunks(held, BATCH):
                try:
                    self._extend_some(url, some, now)
                except PortError as error:
                    if url == self._reading:
                        first = first or error
                    if isinstance(error, Forbidden | NotFound | Refused):
                        self._drop_unextendable(
                            some
                        )  # the queue is gone, say: asking again would not help
        self._keep_instances(now)
        if first is not None:
            raise first

    def _drop_unextendable(self, some: Iterable[tuple[MessageId, _Held]]) -> None:
        """Drop messages whose time cannot be extended; those that the queue still has come again.

        A lifecycle action is kept until it is done: its message may be older than the queue keeps
        any, while its instance still waits.
        """
        with self._condition:
            for message, each in some:
                each.in_queue = False
                if each.hook is None and self._held.get(message) is each:
                    del self._held[message]

    def _extend_some(self, url: str, some: Sequence[tuple[MessageId, _Held]], now: float) -> None:
        """Extend messages of one call; raise as `_extend`."""
        entries = [
            {"Id": str(n), "ReceiptHandle": each.handle, "VisibilityTimeout": VISIBILITY_SECONDS}
            for n, (_, each) in enumerate(some)
        ]
        with translated(EXTEND, changing=False):
            answer = self._sqs(url).change_message_visibility_batch(QueueUrl=url, Entries=entries)
        self._failures.worked(EXTEND)
        failed = {int(each["Id"]) for each in answer.get("Failed", ())}
        with self._condition:
            for _, each in some:
                each.seen_at = now
        self._drop_unextendable(each for n, each in enumerate(some) if n in failed)

    def _keep_instances(self, now: float) -> None:
        """Send heartbeats to the hooks of instances that are still being drained."""
        with self._condition:
            due = [
                (each.beat_at, message, each.hook)
                for message, each in self._held.items()
                if each.hook is not None
                and not each.completing
                and now - each.beat_at >= HEARTBEAT_SECONDS
                and each.beats < HEARTBEATS_MAX
            ]
            for _, message, hook in sorted(due)[: self._hooks.room]:
                held = self._held[message]
                held.beat_at, held.beats = now, held.beats + 1
                self._hooks.beat(hook, partial(self._is_drained, message))

    def _is_drained(self, message: MessageId) -> bool:
        """Return whether the instance of a lifecycle action is still being drained."""
        with self._condition:
            held = self._held.get(message)
            return held is not None and not held.completing

    def _delete(self, url: str, settled: Sequence[_Held]) -> None:
        """Delete messages; those that could not be deleted come again and are settled again."""
        entries = [{"Id": str(n), "ReceiptHandle": each.handle} for n, each in enumerate(settled)]
        try:
            with translated(DELETE, changing=True):
                self._sqs(url).delete_message_batch(QueueUrl=url, Entries=entries)
        except PortError as error:
            if url == self._reading:
                self._note_failure(DELETE, error)
        else:
            self._failures.worked(DELETE)

    def _sqs(self, url: str) -> Any:
        found = _REGION_OF_HOST.match(url)
        region = (found[1] or found[2]) if found else None
        return self._clients.sqs(Region(region) if region else self._home)

    def _note_failure(self, call: str, error: PortError) -> None:
        if not self._may_receive():
            return  # it is the fence that refused, or another replica sees it too
        with self._condition:
            if self._stopped:
                return
        self._failures.failed(call, error)

    def _pause(self, failures: int) -> None:
        """Wait after so many failures in a row, unless the queue is closed."""
        seconds = min(BACKOFF_SECONDS * 2.0 ** min(failures - 1, 10), BACKOFF_MAX_SECONDS)
        with self._condition:
            self._condition.wait_for(lambda: self._stopped, seconds)
