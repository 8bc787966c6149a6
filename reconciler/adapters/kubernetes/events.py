"""The ObjectEvents port over the API server: a thread writes them, at a limited rate."""

import threading
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from reconciler.adapters.kubernetes.event_log import EventLog, RecordedEvent
from reconciler.adapters.kubernetes.kinds import events_path
from reconciler.adapters.kubernetes.transport import MERGE_PATCH, Transport
from reconciler.model.errors import Conflict, Forbidden, NotFound, PortError, Refused
from reconciler.model.text import rfc3339
from reconciler.model.throttling import BucketLevel, TokenBucket
from reconciler.ports.object_events import ObjectEvent
from reconciler.telemetry.threads import log_bug

COMPONENT: Final = "fleet-reconciler"
BUCKET: Final = TokenBucket(capacity=100, per_second=10)
"""Over all objects: 100 at once, then ten per second."""
BACKOFF_SECONDS: Final = 1.0
BACKOFF_MAX_SECONDS: Final = 60.0
MESSAGE_MAX: Final = 1000
"""events.k8s.io accepts notes of up to 1 kB."""
NODE_NAMESPACE: Final = "default"
"""The namespace for Events of objects without a namespace."""
NAME_MAX: Final = 220
JOIN_SECONDS: Final = 0.2
"""Events that are not written within this time are lost."""


class KubernetesEvents:
    """Writes Events in the background.

    Args:
        transport: How to reach the server; closed with this.
        instance: This replica's name.
        now: The wall clock.
        monotonic_seconds: A clock that never jumps.
        counted: Called with `written`, `dropped` or `failed` for each Event.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        instance: str,
        now: Callable[[], datetime],
        monotonic_seconds: Callable[[], float],
        counted: Callable[[str], None],
    ) -> None:
        self._transport = transport
        self._instance = instance
        self._now = now
        self._monotonic_seconds = monotonic_seconds
        self._counted = counted
        self._log = EventLog(now, monotonic_seconds)
        self._level = BucketLevel.full(BUCKET, monotonic_seconds())
        self._names = 0
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="events", daemon=True)
        self._thread.start()

    def emit(self, event: ObjectEvent) -> None:
        """Write an Event soon; see ports.object_events."""
        with self._changed:
            if not self._log.add(event):
                self._counted("dropped")
            self._changed.notify()

    def close(self) -> None:
        """Stop writing; what is not written by now is lost."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join(JOIN_SECONDS)
        self._transport.close()

    def _run(self) -> None:
        pause_seconds = BACKOFF_SECONDS
        while (recorded := self._next()) is not None:
            try:
                self._write(recorded)
            except (Conflict, Forbidden, NotFound, Refused):
                # This concerns this object only (its namespace is terminating, say): the others do
                # not wait.
                self._counted("failed")
            except PortError:
                self._counted("failed")
                with self._changed:
                    self._log.forget(recorded)
                    self._changed.wait_for(lambda: self._closed, pause_seconds)
                pause_seconds = min(2 * pause_seconds, BACKOFF_MAX_SECONDS)
            except Exception:  # noqa: BLE001 - a bug with one Event must not silence all others
                log_bug()
                self._counted("failed")
            else:
                self._counted("written")
                pause_seconds = BACKOFF_SECONDS

    def _next(self) -> RecordedEvent | None:
        """Return the next one that may be written; None when this is closed."""
        with self._changed:
            while not self._closed:
                if not len(self._log):
                    self._changed.wait()
                elif (level := self._level.after_call(self._monotonic_seconds())) is None:
                    self._changed.wait_for(lambda: self._closed, 1 / BUCKET.per_second)
                else:
                    self._level = level
                    return self._log.next()
            return None

    def _write(self, recorded: RecordedEvent) -> None:
        event = recorded.event
        path = events_path(event.namespace or NODE_NAMESPACE)
        if recorded.name:
            patch = {
                "count": recorded.count,
                "lastTimestamp": rfc3339(recorded.last_at),
                "message": _cut(event.message),
            }
            try:
                self._transport.expect(
                    "PATCH", f"{path}/{recorded.name}", body=patch, content_type=MERGE_PATCH
                )
            except NotFound:  # the server forgets Events after an hour
                recorded.name = ""
            else:
                return
        name = self._name(event)
        self._transport.expect("POST", path, body=self._body(recorded, name))
        recorded.name = name

    def _name(self, event: ObjectEvent) -> str:
        """Return a name in client-go's form, which is never used twice."""
        self._names += 1
        stamp = int(self._now().timestamp() * 1_000_000) * 1000 + self._names % 1000
        return f"{event.name[:NAME_MAX].rstrip('.-')}.{stamp:x}"

    def _body(self, recorded: RecordedEvent, name: str) -> dict[str, Any]:
        event = recorded.event
        involved = {"apiVersion": event.api_version, "kind": event.kind, "name": event.name}
        if event.namespace:
            involved["namespace"] = event.namespace
        if event.uid:
            involved["uid"] = event.uid
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": event.namespace or NODE_NAMESPACE},
            "involvedObject": involved,
            "reason": event.reason,
            "message": _cut(event.message),
            "type": "Warning" if event.warning else "Normal",
            "source": {"component": COMPONENT},
            "reportingComponent": COMPONENT,
            "reportingInstance": self._instance,
            "firstTimestamp": rfc3339(recorded.first_at),
            "lastTimestamp": rfc3339(recorded.last_at),
            "count": recorded.count,
        }


def _cut(text: str) -> str:
    if len(text.encode()) <= MESSAGE_MAX:
        return text
    return text.encode()[: MESSAGE_MAX - 3].decode(errors="ignore") + "…"
