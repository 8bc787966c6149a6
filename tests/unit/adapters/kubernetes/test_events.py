"""Events that cannot be written: what waits for them, and what does not."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from queue import Queue
from typing import cast

import orjson
import pytest
from structlog.testing import capture_logs

from reconciler.adapters.kubernetes import KubernetesEvents, Transport, connect
from reconciler.ports.object_events import ObjectEvent
from tests.contract.kubernetes_api import kubeconfig
from tests.contract.scripted import Answer, Request, Script, json_answer, scripted_server

PATIENCE_SECONDS = 40.0
"""Less than the pauses after seven failures in a row, and ample without them."""


def event(namespace: str, name: str) -> ObjectEvent:
    """An Event of a pod."""
    return ObjectEvent(
        kind="Pod", namespace=namespace, name=name, uid="u", reason="Moved", message="m"
    )


@contextmanager
def writing(folder: Path, script: Script, results: Queue[str]) -> Iterator[KubernetesEvents]:
    """A writer to a scripted server."""
    with scripted_server(script) as url:
        events = KubernetesEvents(
            connect(kubeconfig(folder, url)),
            instance="me",
            now=lambda: datetime(2026, 1, 31, tzinfo=UTC),
            monotonic_seconds=time.monotonic,
            counted=results.put,
        )
        try:
            yield events
        finally:
            events.close()


@pytest.mark.parametrize("status", [403, 404, 409, 422])
def test_namespace_that_is_going_holds_up_no_other_namespaces_events(
    tmp_path: Path, status: int
) -> None:
    """A hundred pods of a namespace in deletion would silence all others for an hour."""

    def going(request: Request) -> Answer:
        if "/namespaces/going/" in request.path:
            return json_answer({"message": "because it is being terminated"}, status)
        return json_answer({}, 201)

    results: Queue[str] = Queue()
    with writing(tmp_path, going, results) as events:
        for number in range(7):
            events.emit(event("going", f"pod-{number}"))
        events.emit(event("web", "api-1"))
        found = [results.get(timeout=PATIENCE_SECONDS) for _ in range(8)]
    assert found == ["failed"] * 7 + ["written"]


class Buggy:
    """A transport with a bug that the first Event meets."""

    def __init__(self) -> None:
        self.asked = 0

    def expect(self, *_words: str, **_more: object) -> None:
        """Take the second one."""
        self.asked += 1
        if self.asked == 1:
            raise RuntimeError("a bug")

    def close(self) -> None:
        """It has no connections."""


def test_bug_with_one_event_silences_no_other() -> None:
    """Nobody would know for weeks that no Event is written any more."""
    results: Queue[str] = Queue()
    with capture_logs() as logs:
        events = KubernetesEvents(
            cast("Transport", Buggy()),
            instance="me",
            now=lambda: datetime(2026, 1, 31, tzinfo=UTC),
            monotonic_seconds=time.monotonic,
            counted=results.put,
        )
        events.emit(event("web", "api-1"))
        events.emit(event("web", "api-2"))
        found = [results.get(timeout=PATIENCE_SECONDS) for _ in range(2)]
        events.close()
    assert found == ["failed", "written"]
    (line,) = logs
    assert (line["event"], line["thread"], line["exc_info"]) == ("thread_failed", "events", True)


def test_event_that_is_refused_is_not_asked_for_in_every_cycle(tmp_path: Path) -> None:
    """A missing right would cost a request per pod and cycle."""
    asked: Queue[str] = Queue()

    def denying(request: Request) -> Answer:
        asked.put(orjson.loads(request.body)["involvedObject"]["name"])
        return json_answer({"message": "no"}, 403)

    results: Queue[str] = Queue()
    with writing(tmp_path, denying, results) as events:
        events.emit(event("web", "api-1"))
        results.get(timeout=PATIENCE_SECONDS)
        events.emit(event("web", "api-1"))
        events.emit(event("web", "api-2"))
        results.get(timeout=PATIENCE_SECONDS)
    assert [asked.get(), asked.get()] == ["api-1", "api-2"]
