"""Instances that EC2 refused to end, and for how long that is not tried again.

DescribeInstances does not show that an instance is protected from termination, and reading the
attribute would take a call per instance. So it is learned from the refusal.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from reconciler.model.ids import InstanceId
from reconciler.model.saved_state import ProtectedInstance
from reconciler.model.snapshot import CloudState, Snapshot

EMPTY_WAITS: Final = timedelta(hours=1)
"""After this long an instance without pods is tried again: nothing shows when a protection ends,
and a try lowers the fleet's target for a moment."""
PODS_STAY: Final = timedelta(hours=24)
"""For this long no pod is moved off such an instance: the move would most likely be useless."""


def still_protected(snapshot: Snapshot) -> tuple[ProtectedInstance, ...]:
    """Return what is remembered about instances that may exist, in order.

    A time in the future counts as now.
    """
    known = snapshot.cluster.protected_instances
    if not known:
        return ()
    there = _live_instances(snapshot.cloud)
    return tuple(
        sorted(
            ProtectedInstance(
                instance=protected_instance.instance, at=min(protected_instance.at, snapshot.at)
            )
            for protected_instance in known
            if snapshot.at - protected_instance.at < PODS_STAY
            and (there is None or protected_instance.instance in there)
        )
    )


def _live_instances(cloud: CloudState | None) -> frozenset[InstanceId] | None:
    """Return the live instances; None if EC2 has not shown all."""
    if cloud is None or not cloud.instances_known or cloud.silent:
        return None
    return frozenset(instance.id for instance in cloud.instances if not instance.gone)


def with_protected(
    known: Iterable[ProtectedInstance], refused: Iterable[InstanceId], at: datetime
) -> tuple[ProtectedInstance, ...]:
    """Return what is remembered after EC2 has refused to end some more."""
    protected_instances = {
        protected_instance.instance: protected_instance for protected_instance in known
    }
    protected_instances.update({each: ProtectedInstance(instance=each, at=at) for each in refused})
    return tuple(sorted(protected_instances.values()))
