"""The safety stop: a plan that would remove very many nodes needs a second full list.

So does one that would remove any after the API server was out of reach.
"""

from reconciler.model.snapshot import Snapshot

SHARE_MAX = 0.3
"""As a share of all nodes of our fleets (docs/failures.md)."""
NODES_MAX = 3


def is_suspicious(removals: int, nodes: int, snapshot: Snapshot) -> bool:
    """Return whether a second full list must agree before so many of our nodes are removed.

    After the API server was out of reach it must for each: the first list shows nodes that became
    Ready meanwhile as they were before.
    """
    cluster = snapshot.cluster
    too_many = removals > NODES_MAX and removals > SHARE_MAX * nodes
    return cluster.relists < 2 and (too_many or (cluster.heard_again and removals > 0))
