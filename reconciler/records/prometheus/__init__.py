"""Demand from metrics of kube-state-metrics that a Prometheus server has kept."""

from reconciler.records.prometheus.pods import PodHistory, queries

__all__ = ["PodHistory", "queries"]
