"""Names of log events: constant snake_case phrases, so that they can be searched and alerted on.

Levels: error = a person must act; warning = the loop will retry; info = something changed;
debug = why not.
"""

from typing import Final

STARTED: Final = "reconciler_started"
STOPPED: Final = "reconciler_stopped"
STOP_FORCED: Final = "reconciler_stop_forced"
CRASHED: Final = "reconciler_crashed"
THREAD_FAILED: Final = "thread_failed"
THREAD_ENDED: Final = "thread_ended"
REQUEST_FAILED: Final = "http_request_failed"

CYCLE_ENDED: Final = "cycle_ended"
CYCLE_FAILED: Final = "cycle_failed"
REPORT_FAILED: Final = "report_failed"

ACTION_APPLIED: Final = "action_applied"
ACTION_ALREADY_DONE: Final = "action_already_done"
ACTION_PLANNED: Final = "action_planned"
"""In a dry run: what would have been done."""
ACTION_REFUSED: Final = "action_refused"
ACTION_FAILED: Final = "action_failed"
ACTION_OUTCOME_UNKNOWN: Final = "action_outcome_unknown"
STATE_NOT_SAVED: Final = "state_not_saved"

CLUSTER_BINDING: Final = "cluster_binding"
"""Whether this is the cluster of the fleets' instances: at start and at each change."""

CLOCK_SKEWED: Final = "clock_skewed"
POD_UNPLACEABLE: Final = "pod_unplaceable"
PODS_UNPLACEABLE_MORE: Final = "pods_unplaceable_more"
POD_PLACEABLE: Final = "pod_no_longer_unplaceable"
PLANNING_FAILED: Final = "planning_failed"
NODE_HELD: Final = "node_held"
FLEET_MISSING: Final = "fleet_missing"
FLEET_LEFT_OUT: Final = "fleet_left_out"
ORPHANS_FOUND: Final = "orphans_found"
FLEET_UNAVAILABLE: Final = "fleet_unavailable"
GROUPS_REBALANCE: Final = "groups_rebalance_zones"
FLEET_REMOVAL_WAITS: Final = "fleet_removal_waits"
ROLLING_UPDATE: Final = "rolling_update"
UPDATE_RESUMED: Final = "update_resumed"
UPDATE_NOT_RESUMED: Final = "update_not_resumed"
FLEET_AVAILABLE: Final = "fleet_available_again"
REGION_SILENT: Final = "region_silent"
OBJECT_UNREADABLE: Final = "object_unreadable"

NOTICES_SETTLED: Final = "notices_settled"
"""Messages of the interruption queue that are settled, by kind and result."""
QUEUE_UNREADABLE: Final = "interruption_queue_unreadable"
QUEUE_READABLE: Final = "interruption_queue_readable_again"

LEADING_BEGAN: Final = "leading_began"
LEADING_ENDED: Final = "leading_ended"
LEASES_ELSEWHERE_IGNORED: Final = "leases_elsewhere_ignored"

CONFIG_RELOADED: Final = "config_reloaded"
CONFIG_REFUSED: Final = "config_refused"
CONFIG_NEEDS_RESTART: Final = "config_needs_restart"

DRIFT_FOUND: Final = "fleet_drift_found"
DRIFT_ENDED: Final = "fleet_drift_ended"
GITOPS_ENDED: Final = "gitops_ended"
GITOPS_TURN_FAILED: Final = "gitops_turn_failed"
GITOPS_CONFIG_SEEN: Final = "gitops_config_seen"
GITOPS_CONFIG_RENDERED: Final = "gitops_config_rendered"
GITOPS_CONFIG_REFUSED: Final = "gitops_config_refused"
GITOPS_NO_CONFIG: Final = "gitops_no_config"
GITOPS_STATUS_UNSHOWN: Final = "gitops_status_unshown"
NOTIFICATION_FAILED: Final = "notification_failed"
RECORDING_FAILED: Final = "recording_failed"
