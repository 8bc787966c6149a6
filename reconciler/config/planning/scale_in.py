"""Converts scale-in and grace periods of a config into the planner's settings."""

from reconciler.config.sections import GracePeriod, ScaleIn
from reconciler.planner import disruption_settings as planner


def grace_period(period: GracePeriod) -> planner.GracePeriod:
    """Return a grace period in the planner's form."""
    return planner.GracePeriod(
        starts=period.starts,
        ends=period.ends,
        weekdays=frozenset(period.days) or planner.EVERY_DAY,
        seconds=period.seconds,
    )


def scale_in_settings(scale_in: ScaleIn) -> planner.ScaleInSettings:
    """Return scale-in in the planner's form."""
    return planner.ScaleInSettings(
        idle_threshold_seconds=scale_in.idle_threshold_seconds,
        idle_threshold_explicit=scale_in.states_idle_threshold,
        type_idle_threshold_seconds=scale_in.type_idle_threshold_seconds,
        type_spares=scale_in.type_spares,
        utilization_threshold=scale_in.utilization_threshold,
        unneeded_seconds=scale_in.unneeded_time_seconds,
        settle_seconds=scale_in.settle_time_seconds,
        consolidate_after_seconds=max(
            scale_in.settle_time_seconds, scale_in.consolidate_after_seconds or 0.0
        ),
        move_cost_usd=scale_in.move_cost_usd,
        empty_at_once_max=scale_in.max_empty_at_once,
        non_empty_at_once_max=scale_in.max_non_empty_at_once,
        pod_eviction_timeout_seconds=scale_in.pod_eviction_timeout_seconds,
        graceful_termination_max_seconds=scale_in.max_graceful_termination_seconds,
        move_bare_pods=scale_in.move_bare_pods,
        move_local_storage=scale_in.move_local_storage,
        move_system_pods=scale_in.move_system_pods,
    )
