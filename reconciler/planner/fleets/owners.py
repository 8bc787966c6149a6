"""Which fleet each node belongs to."""

from collections.abc import Mapping

from reconciler.model.cluster import Node
from reconciler.model.fleet import Fleet, Instance
from reconciler.model.ids import FleetKey, NodeName, Region
from reconciler.model.snapshot import Snapshot
from reconciler.planner.demand import FLEET
from reconciler.planner.placement.kinds import REGION
from reconciler.planner.settings import PlannerSettings


def owners_of(
    snapshot: Snapshot,
    settings: PlannerSettings,
    instances: Mapping[NodeName, Instance],
    live: Mapping[FleetKey, Fleet],
    aliases: frozenset[NodeName],
) -> dict[NodeName, FleetKey]:
    """Return the fleet of each node: by its instance's membership, else by its label.

    If EC2 counts a node's instance to another fleet of the same name, such as a deleted one, it
    does not belong to the live one: it does not count in its target, and must not be ended for it.
    Nor does one that somebody launched and labelled so, nor a node that only claims another's
    instance. If another provider is silent, its instances are not shown: then a label alone is no
    membership.

    Args:
        snapshot: What was observed.
        settings: The sector config, resolved.
        instances: Instances by node.
        live: Fleets that EC2 has.
        aliases: Nodes that only claim the instance of another node.
    """
    cloud = snapshot.cloud
    names = {(f.region, f.id): f.name for f in cloud.fleets} if cloud else {}
    providers = {key: fleet.provider for fleet in settings.fleets() for key in fleet.fleet_keys()}
    in_part = cloud.answered_in_part if cloud and cloud.instances_known else frozenset()
    owners: dict[NodeName, FleetKey] = {}
    for node in snapshot.cluster.nodes:
        instance = instances.get(node.name)
        region = Region(
            instance.region if instance else node.labels.get(REGION, settings.home_region)
        )
        name, member_of = node.labels.get(FLEET), instance.fleet_id if instance else None
        if member_of is not None:
            name = names.get((region, member_of), name)
        key = FleetKey(name=name or "", region=region)
        alias = node.name in aliases and not (instance is not None and instance.gone)
        if alias or key not in providers:
            continue
        silent_provider = (providers[key], region) in in_part if in_part else False
        if not _is_of_another(node, instance, name, live.get(key), silent=silent_provider):
            owners[node.name] = key
    return owners


def _is_of_another(
    node: Node, instance: Instance | None, name: str | None, fleet: Fleet | None, *, silent: bool
) -> bool:
    """Return whether the node does not belong to the live fleet whose name it has.

    Args:
        node: The node.
        instance: Its instance; None if EC2 does not show it.
        name: The name of its fleet, by membership or label.
        fleet: The live fleet of that name; None if EC2 has none.
        silent: Whether the fleet's provider did not answer in the region.
    """
    if instance is None:
        return silent and node.instance_id is not None
    if instance.fleet_id is None:
        return instance.tags.get(FLEET) != name
    return fleet is not None and fleet.id != instance.fleet_id
