"""Which fleet each node belongs to."""

from collections.abc import Mapping

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
    """Return which fleet each node belongs to: by its instance's membership, else by its label.

    A node whose instance EC2 counts to another fleet of the same name, a deleted one say, is none
    of the live one's: it fulfils nothing of its target, and must not be ended for it. Nor is one
    that somebody launched and labelled so, nor a mere name of another node. Where another provider
    is silent, instances of others are not shown: there a label alone is no membership.

    Args:
        snapshot: What was observed.
        settings: The sector config, resolved.
        instances: By node.
        live: Fleets that EC2 has.
        aliases: Nodes that are but names of other ones.
    """
    cloud = snapshot.cloud
    names = {(f.region, f.id): f.name for f in cloud.fleets} if cloud else {}
    known = {key: fleet.provider for fleet in settings.fleets() for key in fleet.fleet_keys()}
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
        foreign = member_of is not None and key in live and live[key].id != member_of
        if instance is not None and member_of is None:
            foreign = instance.tags.get(FLEET) != name
        if instance is None and node.instance_id is not None:
            foreign = (known.get(key), region) in in_part
        alias = node.name in aliases and not (instance is not None and instance.gone)
        if key in known and not foreign and not alias:
            owners[node.name] = key
    return owners
