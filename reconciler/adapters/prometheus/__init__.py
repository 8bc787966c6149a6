"""The HTTP API of a Prometheus server: instant queries."""

from reconciler.adapters.prometheus.server import PrometheusServer, PrometheusSettings

__all__ = ["PrometheusServer", "PrometheusSettings"]
