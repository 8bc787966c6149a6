"""Reads the remaining nodes of the fleets and groups that a plan would end."""

from collections.abc import Callable, Collection, Sequence

from reconciler.gitops.terraform_plan.finding import Finding
from reconciler.gitops.terraform_plan.planned import PlannedFleet
from reconciler.model.errors import ObservationError, PortError
from reconciler.model.ids import Region
from reconciler.model.snapshot import CloudState
from reconciler.ports.cloud import Cloud

Clouds = Callable[[str, Collection[str]], Cloud]
"""Opens EC2 Fleets by a cluster's name or, with names of groups, Auto Scaling; called only when a
live fleet is looked up."""


def cluster_of(fleet: PlannedFleet) -> str:
    """Return the cluster that a fleet's tags name."""
    return fleet.tags_before.get("cluster") or fleet.tags_after.get("cluster") or ""


def nodes_of(
    planned: Sequence[PlannedFleet], cloud: Clouds
) -> tuple[dict[str, tuple[str, ...]], tuple[Finding, ...]]:
    """Return live nodes of the fleets to be removed, by fleet id; and what could not be read."""
    going = [f for f in planned if f.fleet_id and f.step in {"delete", "replace"}]
    nodes: dict[str, tuple[str, ...]] = {}
    unseen: list[Finding] = []
    for cluster, provider in sorted({(cluster_of(f), f.provider) for f in going}):
        theirs = [f for f in going if (cluster_of(f), f.provider) == (cluster, provider)]
        regions = sorted({Region(fleet.region) for fleet in theirs})
        groups = frozenset[str]().union(*(fleet.groups for fleet in theirs))
        try:
            state = cloud(cluster, groups).observe(regions)
        except (ObservationError, PortError) as error:
            unseen += [_unseen(fleet, str(error)) for fleet in theirs]
            continue
        nodes |= {fleet.fleet_id: _nodes(state, fleet) for fleet in theirs}
        for fleet in theirs:
            if fleet.region not in state.regions:
                unseen.append(_unseen(fleet, "EC2 did not answer"))
            elif not state.instances_known:
                unseen.append(_unseen(fleet, "EC2 lists no instance, though fleets hold some"))
    return nodes, tuple(unseen)


def _nodes(cloud: CloudState, fleet: PlannedFleet) -> tuple[str, ...]:
    """Return names of a fleet's live instances, as nodes where they have a name."""
    living = [i for i in cloud.instances if i.fleet_id == fleet.fleet_id and not i.gone]
    return tuple(sorted(i.private_dns_name or i.id for i in living))


def _unseen(fleet: PlannedFleet, reason: str) -> Finding:
    """Return a finding: it is unknown whether a fleet has nodes, so it may have some."""
    return Finding(
        severity="refused",
        code="fleet/nodes-unknown",
        where=fleet.name,
        message=f"would go, and its nodes are not known: {reason}",
    )
