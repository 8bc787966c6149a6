"""Spot pools from which EC2 took an instance recently: they are preferred less.

EC2 has a pool of spot capacity per instance type and zone. A pool from which an instance was just
taken is more likely than others to lose the next one as well.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from reconciler.model.binding import Binding
from reconciler.model.cluster import Node
from reconciler.model.fleet import Instance
from reconciler.model.frozen import Labels
from reconciler.model.ids import FleetKey, InstanceId, NodeName
from reconciler.model.notices import SPOT_ACTIONS
from reconciler.model.saved_state import InterruptedPool
from reconciler.model.snapshot import Snapshot
from reconciler.planner.clocks import is_skewed
from reconciler.planner.nodes.interruptions import (
    FORCED_AHEAD,
    InterruptionNotice,
    has_notices,
    notice_of,
    queued_interruptions,
)
from reconciler.planner.placement.kinds import INSTANCE_TYPE, ZONE, region_of_open
from reconciler.planner.settings import PlannerSettings

REMEMBERED_FOR: Final = timedelta(minutes=30)
"""How long after the end of an instance its pool is preferred less."""
PENALTY_PERCENT: Final = 4
"""By how much a fleet counts as more expensive if all its pools were interrupted, in percent.

Less than what consolidation must save, or else it would replace the other node at once.
"""


def pools_after(
    snapshot: Snapshot,
    settings: PlannerSettings,
    owners: Mapping[NodeName, FleetKey],
    binding: Binding,
) -> tuple[InterruptedPool, ...]:
    """Return the pools to remember: known ones, and those that this snapshot shows.

    Each has the time at which EC2 took, or takes, the last instance from it. Nothing is learned
    while nothing proves the cluster, or while the clocks differ.

    Args:
        snapshot: What was observed.
        settings: The sector config, resolved.
        owners: The fleet of each node, including leaving ones.
        binding: Whether cluster and fleets belong together.
    """
    latest: dict[tuple[str, str], InterruptedPool] = {}
    interrupted_pools = [*snapshot.cluster.interrupted_pools]
    if binding.may_remove and not is_skewed(snapshot):
        spot = frozenset(key for f in settings.fleets() if f.spot for key in f.fleet_keys())
        interrupted_pools += _pools_of_noticed(snapshot, owners, spot)
    for interrupted_pool in sorted(interrupted_pools, key=lambda pool: pool.at):
        if _holds(interrupted_pool.at, snapshot.at):
            latest[interrupted_pool.instance_type, interrupted_pool.zone] = interrupted_pool
    return tuple(latest[key] for key in sorted(latest))


def _holds(ended: datetime, at: datetime) -> bool:
    """Return whether an end counts now; not if it is further in the future than any notice."""
    # Computed from the present only: a time on the Lease may be the smallest or largest possible.
    return at - REMEMBERED_FOR < ended <= at + FORCED_AHEAD


def _pools_of_noticed(
    snapshot: Snapshot, owners: Mapping[NodeName, FleetKey], spot: Collection[FleetKey]
) -> Iterator[InterruptedPool]:
    """Yield the pools of spot instances of ours with an interruption notice."""
    cloud, nodes = snapshot.cloud, snapshot.cluster.nodes
    queued = queued_interruptions(snapshot.notices, snapshot.at, rebalance=False)
    if not queued and not any(map(has_notices, nodes)):
        return
    instances = {instance.id: instance for instance in cloud.instances} if cloud else {}
    yield from _of_instances(queued, instances)
    for node in nodes:
        messages = queued.get(node.instance_id, ()) if node.instance_id is not None else ()
        if not (messages or has_notices(node)) or owners.get(node.name) not in spot:
            continue
        notice = notice_of(node, messages, snapshot.at)
        if notice is None or notice.action not in SPOT_ACTIONS:
            continue
        place = _place(node, instances.get(node.instance_id) if node.instance_id else None)
        if all(place):
            yield InterruptedPool(instance_type=place[0], zone=place[1], at=notice.deadline)


def _of_instances(
    queued: Mapping[InstanceId, Sequence[InterruptionNotice]],
    instances: Mapping[InstanceId, Instance],
) -> Iterator[InterruptedPool]:
    """Yield the pools of instances that the queue mentions, whether or not they are nodes."""
    for name, notices in queued.items():
        notice = min(notices, key=lambda each: each.rank)
        one = instances.get(name)
        ours = one is not None and one.fleet_id is not None and one.lifecycle == "spot"
        if one is not None and ours and notice.action in SPOT_ACTIONS:
            yield InterruptedPool(
                instance_type=one.instance_type, zone=one.zone, at=notice.deadline
            )


def _place(node: Node, instance: Instance | None) -> tuple[str, str]:
    """Return the instance type and zone of a node; empty if unknown."""
    if instance is not None:
        return instance.instance_type, instance.zone
    return node.labels.get(INSTANCE_TYPE, ""), node.labels.get(ZONE, "")


def interrupted_of(
    variants: Iterable[Labels], pools: Iterable[InterruptedPool]
) -> tuple[int, tuple[InterruptedPool, ...]]:
    """Return how many pools new nodes may come from, and which of them were interrupted.

    Args:
        variants: The label sets that a new node of a spot fleet may have. If nothing says in which
            zones it launches, every zone of its region counts.
        pools: What is remembered.
    """
    own = {(labels.get(INSTANCE_TYPE, ""), labels.get(ZONE, "")) for labels in variants}
    open_regions = {(name, region_of_open(zone)) for name, zone in own}
    hit = tuple(
        pool
        for pool in pools
        if (pool.instance_type, pool.zone) in own
        or any(
            pool.instance_type == name and region and pool.zone.startswith(region)
            for name, region in open_regions
        )
    )
    return max(len(own), len(hit)), hit


def penalty_nano_usd(price_nano_usd: int, pools: int, interrupted: int) -> int:
    """Return the surcharge of a node: its share of `PENALTY_PERCENT`, rounded up."""
    if not interrupted:
        return 0
    return -(-price_nano_usd * PENALTY_PERCENT * interrupted // (100 * pools))
