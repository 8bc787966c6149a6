"""Names of metrics; docs/metrics.md says what each means and what to alert on."""

from typing import Final

PREFIX: Final = "fleet_reconciler"


def _name(rest: str) -> str:
    return f"{PREFIX}_{rest}"


BUILD_INFO: Final = _name("build_info")
CYCLES: Final = _name("cycles_total")
CYCLE_SECONDS: Final = _name("cycle_seconds")
CHANGE_SECONDS: Final = _name("change_handled_seconds")
ACTIONS: Final = _name("actions_total")
CYCLE_ERRORS: Final = _name("cycle_errors_total")
TROUBLE: Final = _name("trouble")
ACTION_ERRORS: Final = _name("action_errors_total")
DESCHEDULER_EVICTIONS: Final = _name("descheduler_evictions_total")
REACTION_SECONDS: Final = _name("reaction_seconds")
PODS_PENDING: Final = _name("pods_pending")
PODS_UNPLACEABLE: Final = _name("pods_unplaceable")
PODS_PENDING_UNPLACEABLE: Final = _name("pods_pending_unplaceable")
PODS_WITHOUT_SECTOR: Final = _name("pods_without_sector")
FLEET_TARGET: Final = _name("fleet_target_nodes")
FLEET_REQUESTED: Final = _name("fleet_requested_nodes")
FLEET_CURRENT: Final = _name("fleet_current_nodes")
FLEET_JOINED: Final = _name("fleet_joined_nodes")
FLEET_LAUNCHING: Final = _name("fleet_launching_nodes")
FLEET_UNAVAILABLE: Final = _name("fleet_unavailable")
FLEET_REMOVAL_NODES: Final = _name("fleet_removal_nodes")
COST_BEFORE: Final = _name("cost_before_usd_per_hour")
COST_AFTER: Final = _name("cost_after_usd_per_hour")
COST_LOWER_BOUND: Final = _name("cost_lower_bound_usd_per_hour")
COST_REQUESTED: Final = _name("cost_requested_usd_per_hour")
COST_GAP: Final = _name("cost_gap_ratio")
CLUSTER_BOUND: Final = _name("cluster_bound")
CLOCK_SKEW: Final = _name("clock_skew_seconds")
STUCK_ENDS: Final = _name("stuck_ends_last_hour")
NODES_HELD: Final = _name("nodes_held")
DEMAND_QUARANTINED: Final = _name("demand_quarantined")
RAISED_NODES: Final = _name("raised_nodes")
RAISE_NODES_LEFT: Final = _name("raise_nodes_left")
ORPHAN_INSTANCES: Final = _name("orphan_instances")
NODES_DRIFTED: Final = _name("nodes_drifted")
ROLLING_UPDATE: Final = _name("rolling_update")
GITOPS_STAGE: Final = _name("gitops_stage")
GITOPS_SUCCESS_AGE: Final = _name("gitops_last_success_age_seconds")
FLEET_DRIFT: Final = _name("fleet_drift")
LAST_SUCCESS_AGE: Final = _name("last_success_age_seconds")
LONGEST_PAUSE: Final = _name("longest_pause_seconds")
ERRORS_IN_A_ROW: Final = _name("errors_in_a_row")
CONFIG_RELOADS: Final = _name("config_reloads_total")
CONFIG_ERRORS: Final = _name("config_errors_total")
CONFIG_VALID: Final = _name("config_valid")
CONFIG_COMMIT: Final = _name("config_commit")
KUBERNETES_EVENTS: Final = _name("kubernetes_events_total")
RECORDINGS: Final = _name("recordings_total")
NOTICES: Final = _name("notices_total")
QUEUE_READABLE: Final = _name("interruption_queue_readable")
NODES_INTERRUPTED: Final = _name("nodes_interrupted")
POOLS_INTERRUPTED: Final = _name("interrupted_pools")
INSTANCES_PROTECTED: Final = _name("protected_instances")
INTERRUPTION_SECONDS: Final = _name("interruption_drain_seconds")
STAND_INS: Final = _name("fallback_nodes")
STAND_INS_EXTRA_COST: Final = _name("fallback_extra_usd_per_hour")
HEADROOM_PIECES: Final = _name("headroom_pieces")
HEADROOM_MISSING: Final = _name("headroom_missing_pieces")
RESCHEDULER_NODES: Final = _name("spot_rescheduler_nodes")
RESCHEDULER_PODS: Final = _name("spot_rescheduler_pods")
NODES_OUTDATED: Final = _name("nodes_outdated")
LEADER: Final = _name("leader")
DRY_RUN: Final = _name("dry_run")

ALL: Final = (
    BUILD_INFO,
    CYCLES,
    CYCLE_SECONDS,
    CHANGE_SECONDS,
    NOTICES,
    QUEUE_READABLE,
    NODES_INTERRUPTED,
    POOLS_INTERRUPTED,
    INSTANCES_PROTECTED,
    INTERRUPTION_SECONDS,
    STAND_INS,
    STAND_INS_EXTRA_COST,
    HEADROOM_PIECES,
    HEADROOM_MISSING,
    RESCHEDULER_NODES,
    RESCHEDULER_PODS,
    NODES_OUTDATED,
    ACTIONS,
    ACTION_ERRORS,
    CYCLE_ERRORS,
    TROUBLE,
    DESCHEDULER_EVICTIONS,
    REACTION_SECONDS,
    PODS_PENDING,
    PODS_UNPLACEABLE,
    PODS_PENDING_UNPLACEABLE,
    PODS_WITHOUT_SECTOR,
    RAISED_NODES,
    RAISE_NODES_LEFT,
    FLEET_TARGET,
    FLEET_REQUESTED,
    FLEET_CURRENT,
    FLEET_JOINED,
    FLEET_LAUNCHING,
    FLEET_UNAVAILABLE,
    FLEET_REMOVAL_NODES,
    COST_BEFORE,
    COST_AFTER,
    COST_LOWER_BOUND,
    COST_REQUESTED,
    COST_GAP,
    CLUSTER_BOUND,
    CLOCK_SKEW,
    STUCK_ENDS,
    NODES_HELD,
    DEMAND_QUARANTINED,
    ORPHAN_INSTANCES,
    NODES_DRIFTED,
    ROLLING_UPDATE,
    FLEET_DRIFT,
    GITOPS_STAGE,
    GITOPS_SUCCESS_AGE,
    LAST_SUCCESS_AGE,
    LONGEST_PAUSE,
    ERRORS_IN_A_ROW,
    CONFIG_RELOADS,
    CONFIG_ERRORS,
    CONFIG_VALID,
    CONFIG_COMMIT,
    DRY_RUN,
    LEADER,
    KUBERNETES_EVENTS,
    RECORDINGS,
)
"""All metrics of this program, for the test that compares them with the documentation."""
