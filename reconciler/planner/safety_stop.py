"""When a plan would remove so much at once that the picture it has is more likely wrong."""

from reconciler.model.snapshot import Snapshot

SHARE_MAX = 0.3
"""Of all nodes of our fleets (docs/failures.md)."""
NODES_MAX = 3


def is_suspicious(removals: int, nodes: int, snapshot: Snapshot) -> bool:
    """Whether a second full list must agree before so many of our nodes begin to go."""
    too_many = removals > NODES_MAX and removals > SHARE_MAX * nodes
    return too_many and snapshot.cluster.relists < 2
