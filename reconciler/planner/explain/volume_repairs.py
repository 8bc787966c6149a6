"""What would lift a refusal because of the pod's volumes or host ports."""

from collections.abc import Callable
from dataclasses import replace

from reconciler.model.cluster import HostPort, Pod
from reconciler.model.frozen import FrozenMap
from reconciler.planner.explain.repair import Repair, spec_changed
from reconciler.planner.placement.filters import volumes
from reconciler.planner.placement.kinds import NodeKind
from reconciler.planner.placement.simulation import RowSpec
from reconciler.planner.placement.volume_needs import VolumeNeeds

NeedsOf = Callable[[Pod], VolumeNeeds]
"""Returns what a pod's volumes require; the pod may have fewer claims than any in the cluster."""


def without_claim(repair: Repair, kind: NodeKind, needs_of: NeedsOf) -> Repair | None:
    """Return the repair with the refusing claim fixed: created, freed, or given another volume."""
    pod, needs = repair.pod, needs_of(repair.pod)
    if needs.blocked:
        gone = set(needs.claim.split(", "))
        return repair.with_pod(_fewer_claims(pod, gone), needs.remedy, 6)
    code = volumes.refuses(needs, kind)
    for claim in sorted(set(pod.claims)):
        rest = _fewer_claims(pod, {claim})
        if volumes.refuses(needs_of(rest), kind) != code:
            change = f"give the pod a new volume for claim {claim}"
            return repair.with_pod(rest, change, 8)
    return None


def _fewer_claims(pod: Pod, gone: set[str]) -> Pod:
    return replace(pod, claims=tuple(claim for claim in pod.claims if claim not in gone))


def attached(needs: VolumeNeeds, driver: str) -> int:
    """Return how many volumes of the driver a node attaches for the pod."""
    return needs.attachments.get(driver, 0) + sum(v.driver == driver for v in needs.shared)


def beyond_limit(needs: VolumeNeeds, row: RowSpec) -> tuple[str, int] | None:
    """Return the first driver with too many of the pod's volumes for a new node, and the limit."""
    for driver in sorted(needs.drivers):
        limit = row.volume_limits.get(driver)
        if limit is not None and attached(needs, driver) > limit:
            return driver, limit
    return None


def with_fewer_volumes(repair: Repair, needs_of: NeedsOf) -> Repair | None:
    """Return the repair with as many of the driver's volumes as a new node attaches."""
    needs = needs_of(repair.pod)
    found = beyond_limit(needs, repair.row)
    if found is None:
        return None
    driver, limit = found
    has, pod = attached(needs, driver), repair.pod
    for claim in sorted(set(pod.claims), reverse=True):
        if attached(needs_of(pod), driver) <= limit:
            break
        fewer = _fewer_claims(pod, {claim})
        if attached(needs_of(fewer), driver) < attached(needs_of(pod), driver):
            pod = fewer
    if attached(needs_of(pod), driver) > limit:
        return None
    change = f"mount at most {limit} volumes of {driver} in one pod instead of {has}"
    return repair.with_pod(pod, change, 3)


def with_more_attachments(repair: Repair, another: str, needs: VolumeNeeds) -> Repair | None:
    """Return the repair with other nodes, which attach as many volumes as the pod has.

    Args:
        repair: The pod, and the row that attaches too few.
        another: The change that adds such nodes.
        needs: What the pod's volumes need.
    """
    found = beyond_limit(needs, repair.row)
    if found is None:
        return None
    driver, _ = found
    has = attached(needs, driver)
    limits = FrozenMap({**repair.row.volume_limits, driver: has})
    change = f"{another} whose nodes attach at least {has} volumes of {driver}"
    return repair.with_row(repair.row._replace(volume_limits=limits), change, 4)


def taken_port(pod: Pod, row: RowSpec) -> HostPort | None:
    """Return the first of the pod's host ports that a DaemonSet uses on every new node."""
    return next(
        (port for port in pod.spec.host_ports if any(map(port.collides, row.taken_ports))),
        None,
    )


def with_another_port(repair: Repair) -> Repair | None:
    """Return the repair without the host port that is used."""
    port = taken_port(repair.pod, repair.row)
    if port is None:
        return None
    rest = tuple(p for p in repair.pod.spec.host_ports if p != port)
    change = f"use another host port than {port.port}/{port.protocol}, which a DaemonSet takes"
    return repair.with_pod(spec_changed(repair.pod, host_ports=rest), change, 4)
