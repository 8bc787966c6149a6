"""Where each section of a config stands, and what must stand beside its keys."""

from tests.unit.config.launch_template_keys import LAUNCH_TEMPLATE_PLACES

FLEET = "sectors: {s: {kind: memory, fleets: [BODY]}}"
PLACES = {
    "SectorConfig": ("BODY", "", ()),
    "GracePeriod": ("inactive_grace_periods: [BODY]", "", ("inactive_grace_periods", 0)),
    "MaintenanceWindow": ("maintenance_windows: [BODY]", "", ("maintenance_windows", 0)),
    "ScaleIn": ("scale_in: BODY", "", ("scale_in",)),
    "SpotRescheduler": ("spot_rescheduler: BODY", "", ("spot_rescheduler",)),
    "RollingUpdate": ("rolling_update: BODY", "", ("rolling_update",)),
    "SpotReturn": ("spot_return: BODY", "", ("spot_return",)),
    "DisruptionBudget": ("disruption_budgets: [BODY]", "nodes: 1", ("disruption_budgets", 0)),
    "BlastRadiusLimit": ("blast_radius: BODY", "pods_per_controller: 1", ("blast_radius",)),
    "Headroom": (
        "{headroom: [BODY], sectors: {s: {kind: memory, fleets: []}}}",
        "sector: s",
        ("headroom", 0),
    ),
    "Interruption": ("interruption: BODY", "", ("interruption",)),
    "Tracing": ("tracing: BODY", "", ("tracing",)),
    "Recording": ("recording: BODY", "", ("recording",)),
    "Notifications": ("notifications: BODY", "", ("notifications",)),
    "StuckEnds": ("stuck_ends: BODY", "", ("stuck_ends",)),
    "RaiseLimits": ("raise_limits: BODY", "", ("raise_limits",)),
    "LeaderElection": ("leader_election: BODY", "", ("leader_election",)),
    "OwnSize": (
        "sizes: {own: BODY}",
        "cpu: 1, memory: 1Gi, instance_types: [t3.small]",
        ("sizes", "own"),
    ),
    "FleetEntry": (FLEET, "size: small", ("sectors", "s", "fleets", 0)),
    "SectorEntry": ("sectors: {s: BODY}", "kind: memory, fleets: []", ("sectors", "s")),
    "Taint": (
        "sectors: {s: {kind: memory, fleets: [], taints: [BODY]}}",
        "key: a, effect: NoSchedule",
        ("sectors", "s", "taints", 0),
    ),
    "Terraform": ("terraform: BODY", "", ("terraform",)),
    "TerraformVariables": (
        "sectors: {s: {kind: memory, fleets: [{size: small}], terraform: BODY}}",
        "",
        ("sectors", "s", "terraform"),
    ),
    "Backend": (
        "terraform: {backend: BODY}",
        "bucket: states, key: k, region: us-east-1",
        ("terraform", "backend"),
    ),
    **LAUNCH_TEMPLATE_PLACES,
    "Descheduler": ("descheduler: BODY", "", ("descheduler",)),
    "Policies": ("descheduler: {policies: BODY}", "", ("descheduler", "policies")),
}
"""Where a section stands, what else must be in it, and how its model is reached."""


TOGETHER = {
    ("SectorConfig", "headroom"): "sectors: {s: {kind: memory, fleets: []}}",
    ("Headroom", "sector"): "nodes: 1",
    ("SectorConfig", "balancing_ignore_labels"): "balance_similar_groups: true",
    ("SectorConfig", "balancing_labels"): "balance_similar_groups: true",
    ("FleetEntry", "terminate_after"): "expire_after: 720h",
    ("DisruptionBudget", "schedule"): "duration: 1h",
    ("DisruptionBudget", "duration"): "schedule: 0 2 * * 6",
}
"""What must stand beside a key that has a value."""
