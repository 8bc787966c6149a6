"""OpenTelemetry's OTLP over HTTP as the Spans port.

Headers, certificates and timeouts are those of the environment variables `OTEL_EXPORTER_OTLP_…`.
Source: OpenTelemetry specification, "OTLP Exporter", read 2026-11.
"""

from datetime import datetime
from threading import Timer
from typing import Final

from reconciler.model.errors import UsageError
from reconciler.ports.spans import Span

try:
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
except ImportError as error:
    raise UsageError(
        "tracing.endpoint",
        "the OpenTelemetry SDK is not installed",
        "install fleet-reconciler[tracing], or leave tracing out",
    ) from error

SPANS_MAX: Final = 2048
"""How many spans wait to be sent; more are dropped."""
FLUSH_SECONDS: Final = 2.0
"""The longest wait for remaining spans when the program ends."""


class OtlpSpans:
    """Sends spans from a thread of the SDK's own.

    Args:
        endpoint: Base URL of a collector, such as `http://otel-collector:4318`.
        attributes: Resource attributes, such as `k8s.cluster.name`.
    """

    def __init__(self, endpoint: str, attributes: dict[str, str]) -> None:
        self._exporter = OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces")
        self._provider = TracerProvider(
            resource=Resource.create({"service.name": "fleet-reconciler", **attributes}),
            shutdown_on_exit=False,
        )
        self._provider.add_span_processor(
            BatchSpanProcessor(self._exporter, max_queue_size=SPANS_MAX)
        )
        self._tracer = self._provider.get_tracer("fleet-reconciler")

    def send(self, span: Span) -> None:
        """Send a span with all of its parts."""
        self._send(span, None)

    def close(self) -> None:
        """Send what is left, for at most two seconds."""
        # The SDK itself would retry for half a minute while the collector does not answer.
        enough = Timer(FLUSH_SECONDS, self._exporter.shutdown)
        enough.start()
        self._provider.shutdown()
        enough.cancel()

    def _send(self, span: Span, parent: trace.Span | None) -> None:
        context = None if parent is None else trace.set_span_in_context(parent)
        started = self._tracer.start_span(
            span.name,
            context=context,
            attributes=dict(span.attributes),
            start_time=_nanoseconds(span.start),
        )
        for event in span.events:
            started.add_event(event.name, dict(event.attributes), _nanoseconds(span.end))
        if span.error:
            started.set_status(trace.Status(trace.StatusCode.ERROR, span.error))
        for part in span.parts:
            self._send(part, started)
        started.end(_nanoseconds(span.end))


def _nanoseconds(at: datetime) -> int:
    return int(at.timestamp() * 1_000_000) * 1000
