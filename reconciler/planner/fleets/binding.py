"""Decides whether this Kubernetes API serves the instances of our fleets (docs/promises.md).

A config of one cluster with the kubeconfig of another shows every instance of the fleets without a
node. Reading the lists again would not help. So nothing is ended, drained or deleted until
something proves that cluster and fleets belong together:

- now: a Node of the cluster is an instance of one of our fleets;
- before: our own Lease says that this was so, in a cluster with the same identity and with a fleet
  that EC2 still shows. A Lease that was restored into another cluster names another identity.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from reconciler.model.binding import Binding, KeptProof
from reconciler.model.cluster import Node
from reconciler.model.fleet import CLUSTER_TAG, FLEET_TAG, Instance
from reconciler.model.ids import FleetId, NodeName
from reconciler.model.snapshot import CloudState, Snapshot
from reconciler.model.text import counted_noun, duration
from reconciler.planner.clocks import earliest_now
from reconciler.planner.demand import FLEET
from reconciler.planner.fleets.instances.stuck import names_of
from reconciler.planner.fleets.live_fleet import fleet_keys_by_instance
from reconciler.planner.settings import PlannerSettings

RENEWED_AFTER = timedelta(hours=6)
"""How old a saved proof may be before the Lease is written again."""
FLEETS_MAX = 32
"""How many fleets a saved proof names; one that EC2 still shows is enough."""


def judge_binding(snapshot: Snapshot, settings: PlannerSettings) -> Binding:
    """Return the verdict on one snapshot, and what the Lease should save of it."""
    cloud, uid = snapshot.cloud, snapshot.cluster.uid
    if cloud is None or not (cloud.instances_known or cloud.instances_asked):
        because = "EC2's instances are not known: no instance is ended for not joining"
        return Binding(because=because, cluster_uid=uid, may_remove=True)
    ours = _our_instances(cloud, settings)
    proven = _nodes_that_are(ours, snapshot.cluster.nodes)
    if proven:
        return _proven(snapshot, proven)
    old = _old_enough(ours, earliest_now(snapshot), settings)
    waited = duration(timedelta(seconds=settings.instance_init_seconds))
    seen = _valid_saved_proof(snapshot, cloud)
    kept = snapshot.cluster.proof
    if seen:
        nodes = counted_noun(len(snapshot.cluster.nodes), "node")
        return Binding(
            verdict="previously-proven",
            because=f"none of the {nodes} of this cluster is an instance of the fleets now; "
            f"some were, last seen {seen.proven_at:%Y-%m-%d %H:%M} UTC",
            cluster_uid=uid,
            kept=seen,
            may_remove=True,
        )
    elsewhere = ""
    if kept is not None and kept.cluster_uid != uid:
        elsewhere = "; the Lease's proof is of another cluster"
    if not old:
        because = (
            "no node is an instance of the fleets yet, and none of their instances is older than "
            f"instance_init_time ({waited}){elsewhere}"
        )
        return Binding(verdict="pending", because=because, cluster_uid=uid)
    because = (
        f"{counted_noun(len(old), 'instance')} of the fleets launched more than {waited} ago, and "
        f"none of the cluster's {counted_noun(len(snapshot.cluster.nodes), 'node')} is one of them"
        f"{elsewhere}: check the kubeconfig context and the AWS account"
    )
    return Binding(verdict="unproven", because=because, cluster_uid=uid)


def _our_instances(cloud: CloudState, settings: PlannerSettings) -> list[Instance]:
    """Return members of our fleets, and instances with our tags whose fleets are gone."""
    members = fleet_keys_by_instance(cloud, settings)
    return [
        instance
        for instance in cloud.instances
        if instance.id in members
        or (instance.tags.get(CLUSTER_TAG) == settings.cluster and instance.tags.get(FLEET_TAG))
    ]


def _nodes_that_are(ours: Iterable[Instance], nodes: Sequence[Node]) -> dict[NodeName, Instance]:
    """Return nodes that are certainly one of these instances.

    An instance that EC2 has ended proves as much as a running one. A name proves little: private
    addresses, and so the names of kubelets without a providerID, are the same in many networks.
    Such a node must have the instance's fleet as its label and be younger than the instance.
    """
    by_id = {each.id: each for each in ours}
    without_id = any(node.instance_id is None for node in nodes)
    alike = by_id.values() if without_id else ()
    by_name = {name: each for each in alike for name in names_of((each,))}
    instances: dict[NodeName, Instance] = {}
    for node in nodes:
        if node.instance_id is not None:
            instance = by_id.get(node.instance_id)
        else:
            instance = by_name.get(str(node.name))
            if instance is not None and not _is_plausibly(node, instance):
                instance = None
        if instance is not None:
            instances[node.name] = instance
    return instances


def _is_plausibly(node: Node, instance: Instance) -> bool:
    same_fleet = FLEET in node.labels and node.labels[FLEET] == instance.tags.get(FLEET_TAG)
    born, launched = node.created_at, instance.launched_at
    return same_fleet and (born is None or launched is None or born >= launched)


def _proven(snapshot: Snapshot, proven: Mapping[NodeName, Instance]) -> Binding:
    uid, total = snapshot.cluster.uid, len(snapshot.cluster.nodes)
    verb = "is an instance" if len(proven) == 1 else "are instances"
    return Binding(
        verdict="proven",
        because=f"{len(proven)} of {counted_noun(total, 'node')} {verb} of the fleets",
        cluster_uid=uid,
        kept=_to_keep(snapshot, proven.values()) if uid else None,
        may_remove=True,
    )


def _to_keep(snapshot: Snapshot, proven: Iterable[Instance]) -> KeptProof | None:
    """Return the proof for the Lease: the saved one, unless it is old or names fewer fleets."""
    uid, before = snapshot.cluster.uid, snapshot.cluster.proof
    fleets = sorted({instance.fleet_id for instance in proven if instance.fleet_id is not None})
    if before is None or before.cluster_uid != uid:
        return proof_of(uid, fleets, snapshot.at) if fleets else None
    known = frozenset(before.fleets)
    missing = len(known) < FLEETS_MAX and not known.issuperset(fleets)
    fresh = abs(snapshot.at - before.proven_at) < RENEWED_AFTER
    if fresh and not missing:
        return before
    shown = _shown_fleets(snapshot.cloud)
    return proof_of(uid, [*fleets, *sorted((known & shown) - set(fleets))], snapshot.at)


def proof_of(uid: str, fleets: Sequence[FleetId], at: datetime) -> KeptProof:
    """Return the proof that the cluster runs instances of these fleets, dated to the full hour.

    Of more than `FLEETS_MAX` fleets the first count.
    """
    hour = at.replace(minute=0, second=0, microsecond=0)
    return KeptProof(cluster_uid=uid, fleets=tuple(sorted(fleets[:FLEETS_MAX])), proven_at=hour)


def _valid_saved_proof(snapshot: Snapshot, cloud: CloudState) -> KeptProof | None:
    """Return the saved proof if it is of this very cluster and of fleets in this account."""
    kept, uid = snapshot.cluster.proof, snapshot.cluster.uid
    if kept is None or not uid or kept.cluster_uid != uid:
        return None
    if _shown_fleets(cloud).isdisjoint(kept.fleets):
        return None
    return replace(kept, proven_at=min(kept.proven_at, snapshot.at))


def _shown_fleets(cloud: CloudState | None) -> frozenset[FleetId]:
    """Return the fleets that EC2 lists, or to which it says an instance belongs."""
    if cloud is None:
        return frozenset()
    members = {instance.fleet_id for instance in cloud.instances if instance.fleet_id is not None}
    return frozenset({fleet.id for fleet in cloud.fleets} | members)


def _old_enough(
    ours: Iterable[Instance], at: datetime, settings: PlannerSettings
) -> list[Instance]:
    """Return the live instances that should have become nodes by now."""
    wait = timedelta(seconds=settings.instance_init_seconds)
    return [
        instance
        for instance in ours
        if instance.state in {"pending", "running"}
        and instance.launched_at is not None
        and instance.launched_at + wait <= at
    ]
