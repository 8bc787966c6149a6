"""Traces of cycles, as an OpenTelemetry collector takes them over HTTP."""

import gzip
import queue
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from reconciler.adapters.opentelemetry import OtlpSpans
from reconciler.loops.reconcile_loop import CycleReport
from reconciler.loops.reporters.trace_reporter import ACTIONS_MAX, TraceReporter
from reconciler.model.actions import DeleteNode
from reconciler.model.errors import Unavailable
from reconciler.model.ids import NodeName
from reconciler.model.outcome import Outcome
from tests.builders import NOW


class Collector(ThreadingHTTPServer):
    """Takes what is exported, and answers nothing but 200."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: queue.Queue[tuple[str, dict[str, str], bytes]] = queue.Queue()

    @property
    def url(self) -> str:
        """Its base URL."""
        return f"http://127.0.0.1:{self.server_port}"

    def spans(self) -> tuple[dict[str, str], list[Any]]:
        """The attributes of the resource and the spans of the next request."""
        path, headers, body = self.requests.get(timeout=30)
        assert path == "/v1/traces"
        if headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        (resource,) = ExportTraceServiceRequest.FromString(body).resource_spans
        attributes = {a.key: a.value.string_value for a in resource.resource.attributes}
        return attributes, [s for scope in resource.scope_spans for s in scope.spans]


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.put((self.path, dict(self.headers), body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def collector() -> Iterator[Collector]:
    """A collector on loopback."""
    with Collector() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def _told(collector: Collector, report: CycleReport) -> tuple[dict[str, str], dict[str, Any]]:
    """What arrives of a cycle that ended at NOW: the resource, and the spans by name."""
    spans = OtlpSpans(f"{collector.url}/", {"k8s.cluster.name": "analytics"})
    TraceReporter(spans, lambda: NOW).cycle_ended(report)
    spans.close()
    resource, found = collector.spans()
    return resource, {span.name: span for span in found}


def _at(nanoseconds: int) -> datetime:
    return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=nanoseconds // 1000)


def test_cycle_is_a_trace_of_its_phases(collector: Collector) -> None:
    """Whoever looks for a slow cycle sees where its time went."""
    action = DeleteNode(node=NodeName("n1"), policy="scale-in", because="gone")
    outcomes = (Outcome(action=action, kind="applied", seconds=0.25),) * (ACTIONS_MAX + 5)
    report = CycleReport(
        number=7,
        outcomes=outcomes,
        gathered_seconds=0.5,
        observe_seconds=1,
        plan_seconds=2,
        act_seconds=4,
    )
    resource, spans = _told(collector, report)
    assert resource["service.name"] == "fleet-reconciler"
    assert resource["k8s.cluster.name"] == "analytics"
    assert list(spans) == ["gather", "observe", "plan", "act", "cycle"]
    cycle = spans.pop("cycle")
    assert {span.parent_span_id for span in spans.values()} == {cycle.span_id}
    assert {span.trace_id for span in spans.values()} == {cycle.trace_id}
    assert _at(cycle.start_time_unix_nano) == NOW - timedelta(seconds=7.5)
    assert _at(spans["act"].start_time_unix_nano) == NOW - timedelta(seconds=4)
    assert _at(spans["act"].end_time_unix_nano) == _at(cycle.end_time_unix_nano) == NOW
    assert len(spans["act"].events) == ACTIONS_MAX
    event = spans["act"].events[0]
    told = {a.key: a.value.string_value or a.value.double_value for a in event.attributes}
    assert event.name == "delete-node"
    assert told == {
        "node": "n1",
        "policy": "scale-in",
        "because": "gone",
        "outcome": "applied",
        "seconds": 0.25,
    }


def test_failed_cycle_says_why_and_no_secret(collector: Collector) -> None:
    """A trace goes to another system, which more people read."""
    error = Unavailable("EC2", "https://user:s3cret-token@host answered 503")
    _, spans = _told(collector, CycleReport(number=1, error=error, observe_seconds=1))
    status = spans["cycle"].status
    assert status.code == status.STATUS_CODE_ERROR
    assert "answered 503" in status.message
    assert "s3cret-token" not in status.message


def test_collector_that_is_not_there_holds_nothing_up() -> None:
    """Traces are for people; the loop goes on without them."""
    spans = OtlpSpans("http://127.0.0.1:1", {})
    for number in range(5000):
        TraceReporter(spans, lambda: NOW).cycle_ended(CycleReport(number=number))
    spans.close()
