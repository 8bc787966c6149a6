"""Which spot nodes get the node watch; pure."""

from collections.abc import Mapping
from typing import Final

from reconciler.config.resolve import ResolvedFleet, resolve_fleets
from reconciler.config.rules.labels import OURS
from reconciler.config.schema import SectorConfig
from reconciler.records.user_data import read_boot

SPOT_LABELS: Final = (
    ("lifecycle", "Ec2Spot"),
    ("eks.amazonaws.com/capacityType", "SPOT"),
    ("karpenter.sh/capacity-type", "spot"),
)
"""Labels by which the DaemonSet of the node watch finds spot nodes: one of them is enough."""


def without_node_watch(config: SectorConfig) -> tuple[str, ...]:
    """Return the spot fleets and groups whose nodes have none of the labels, as far as is known.

    The module sets the first label. Where others make the fleet, or it has user data of its own,
    the config does not always show what its nodes have.
    """
    return tuple(
        fleet.name
        for fleet in resolve_fleets(config)
        if fleet.entry.spot and not _shown_labels(fleet).items() & set(SPOT_LABELS)
    )


def _shown_labels(fleet: ResolvedFleet) -> Mapping[str, str]:
    """Return the labels that its nodes have, as far as the config shows them."""
    if not fleet.is_rendered:
        # What plans call a node of others is not what it carries.
        return {key: value for key, value in fleet.labels.items() if key not in OURS}
    user_data = fleet.terraform.get("user_data")
    return fleet.labels if user_data is None else read_boot(user_data).labels
