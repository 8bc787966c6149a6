"""The safety stop: a plan that would remove very many nodes needs a second full list."""

from reconciler.model.snapshot import Snapshot

SHARE_MAX = 0.3
"""As a share of all nodes of our fleets (docs/failures.md)."""
NODES_MAX = 3


def is_suspicious(removals: int, nodes: int, snapshot: Snapshot) -> bool:
    """Return whether a second full list must agree before so many of our nodes are removed."""
    too_many = removals > NODES_MAX and removals > SHARE_MAX * nodes
    return too_many and snapshot.cluster.relists < 2
