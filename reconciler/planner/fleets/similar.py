"""Which fleets launch similar nodes, whatever their zone (docs/auto-scaling-groups.md)."""

from collections.abc import Hashable
from functools import lru_cache

from reconciler.model.frozen import Labels
from reconciler.planner.fleets.inventory import FleetStatus
from reconciler.planner.fleets.new_nodes.new_node import NewNode
from reconciler.planner.placement.kinds import HOSTNAME, REGION, ZONE_KEYS
from reconciler.planner.settings import BalanceSettings

PLACES_AND_GROUPS = ZONE_KEYS | {
    HOSTNAME,
    REGION,
    "failure-domain.beta.kubernetes.io/region",
    "topology.ebs.csi.aws.com/zone",
    "topology.k8s.aws/zone-id",
    "k8s.amazonaws.com/eniConfig",
    "eks.amazonaws.com/nodegroup",
    "eks.amazonaws.com/nodegroup-image",
    "eks.amazonaws.com/sourceLaunchTemplateId",
    "eks.amazonaws.com/sourceLaunchTemplateVersion",
    "alpha.eksctl.io/nodegroup-name",
    "alpha.eksctl.io/instance-id",
    "k8s.io/cloud-provider-aws",
    "kops.k8s.io/instancegroup",
    "fleet",
}
"""Labels in which similar fleets may differ: they name a place, a group, a node or the cluster.

Source: cluster-autoscaler/processors/nodegroupset (BasicIgnoredLabels, aws_nodegroups.go).
`lifecycle` of that list is left out: here spot and on-demand fleets are never similar. The
cluster's label is added: only nodes show it, not the tags of a group without any.
"""


def likeness_of(status: FleetStatus, node: NewNode, balance: BalanceSettings) -> Hashable:
    """Return what the new nodes of similar fleets have in common, other than their resources."""
    fleet = status.settings
    shared = (fleet.sector, status.key.region, fleet.spot, fleet.priority, fleet.over_subscription)
    labels = _labels(node.row.variants, balance)
    return (*shared, labels) if balance.labels else (*shared, node.row.taints, labels)


@lru_cache(maxsize=1024)
def _labels(variants: tuple[Labels, ...], balance: BalanceSettings) -> Hashable:
    """Return the labels that count, of every node that may come; cached, as they rarely change."""
    ignored = PLACES_AND_GROUPS | balance.ignored_labels
    return frozenset(
        frozenset(
            (key, value)
            for key, value in variant.items()
            if (key in balance.labels if balance.labels else key not in ignored)
        )
        for variant in variants
    )
