"""When a plan would remove so much at once that the picture it has is more likely wrong."""

from reconciler.model.snapshot import Snapshot

SHARE_MAX = 0.3
"""Of all nodes of our fleets (docs/failures.md)."""
NODES_MAX = 3
UNREADY_ALWAYS = 3
UNREADY_PERCENT_MAX = 45


def is_suspicious(removals: int, nodes: int, snapshot: Snapshot) -> bool:
    """Whether a second full list must agree before so many of our nodes begin to go."""
    too_many = removals > NODES_MAX and removals > SHARE_MAX * nodes
    return too_many and snapshot.cluster.relists < 2


def is_outage(unready: int, nodes: int) -> bool:
    """Whether so many nodes are not Ready that their network, or the API server's, is to blame.

    Source: Cluster Autoscaler's --ok-total-unready-count and --max-total-unready-percentage, from
    which on it does nothing; the node lifecycle controller evicts from no zone that is all silent.
    """
    return unready > UNREADY_ALWAYS and unready * 100 > nodes * UNREADY_PERCENT_MAX
