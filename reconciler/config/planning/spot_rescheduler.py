"""Converts the section `spot_rescheduler` of a config into the planner's settings."""

from reconciler.config.sections import SpotRescheduler
from reconciler.planner import disruption_settings as planner


def spot_rescheduler(stated: SpotRescheduler) -> planner.SpotRescheduler | None:
    """Return how pods are moved to spot nodes; None while that is switched off."""
    if not stated.enabled:
        return None
    return planner.SpotRescheduler(
        on_demand=_node_label(stated.on_demand_node_label),
        spot=_node_label(stated.spot_node_label),
        node_drain_delay_seconds=stated.node_drain_delay_seconds,
        pod_eviction_timeout_seconds=stated.pod_eviction_timeout_seconds,
        graceful_termination_max_seconds=stated.max_graceful_termination_seconds,
        move_bare_pods=stated.delete_non_replicated_pods,
    )


def _node_label(text: str) -> planner.NodeLabel:
    """Parse `key` or `key=value`."""
    key, is_valued, value = text.partition("=")
    return planner.NodeLabel(key=key, value=value if is_valued else None)
