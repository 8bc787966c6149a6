"""Computes what a pod's containers hold while the pod is resized in place.

kube-scheduler counts per container the maximum of what its spec requests, what the kubelet has
allocated and what the container has now. Where the kubelet reports that a resize is infeasible, the
spec's requests do not count. Source: k8s.io/component-helpers/resource AggregateContainerRequests
with UseStatusResources.
"""

from collections.abc import Callable, Iterable

from msgspec import Raw
from msgspec.json import Decoder, Encoder

from reconciler.records.kubernetes.fields import NULL, Quantity, Wire, amount_of, amounts_of
from reconciler.records.kubernetes.requests import (
    ResourceRequirementsWire,
    stated_requests,
)


class ContainerPartsWire(Wire, omit_defaults=True):
    """A container or init container; the parts shared by replicas stay raw."""

    name: str | None = None
    resources: Raw = NULL
    ports: Raw = NULL
    restart_policy: str | None = None


class HoldingWire(Wire):
    """What a container has (`resources`) and may have (`allocatedResources`), in its status."""

    name: str | None = None
    resources: Raw = NULL
    allocated_resources: Raw = NULL


_RESOURCES = Decoder(ResourceRequirementsWire | None)
_ALLOCATED = Decoder(dict[str, Quantity] | None)
_ENCODER = Encoder(order="sorted")
_REQUESTS = b'"requests":'


def apply_resizes(
    containers: Iterable[ContainerPartsWire],
    statuses: Iterable[HoldingWire],
    cannot_be_resized: Callable[[], bool],
) -> None:
    """Replace the `resources` of containers that hold something other than they request.

    Args:
        containers: Those that keep running; init containers that end hold nothing afterwards.
        statuses: Their statuses, in any order.
        cannot_be_resized: Whether the pending resize is infeasible on the pod's node.

    Raises:
        ValueError: A quantity is invalid.
    """
    # Before Kubernetes 1.33, and before containers have started, there are no `resources`.
    holdings = {status.name: status for status in statuses if status.resources is not NULL}
    if not holdings:
        return
    for container in containers:
        holding = holdings.get(container.name)
        if holding is not None and not _as_asked(container, holding):
            container.resources = counted_resources(
                container.resources,
                holding.resources,
                holding.allocated_resources,
                cannot_be_resized=cannot_be_resized(),
            )


def _as_asked(container: ContainerPartsWire, holding: HoldingWire) -> bool:
    """Return whether all three are equal, as they are except during a resize."""
    if container.resources != holding.resources:
        return False
    allocated = holding.allocated_resources
    if allocated is NULL or _REQUESTS + bytes(allocated) in bytes(holding.resources):
        return True
    has = _RESOURCES.decode(holding.resources)  # equal except for white space, as kubectl prints it
    return has is not None and has.requests == _ALLOCATED.decode(allocated)


def counted_resources(
    asked: Raw, has: Raw, allocated: Raw, *, cannot_be_resized: bool, of_pod: bool = False
) -> Raw:
    """Return the `resources` that count: `asked` itself, or the maximum of asked and held.

    Args:
        asked: What the spec requests.
        has: What the container has now, by its status.
        allocated: What the kubelet has allocated, by its status.
        cannot_be_resized: Whether the spec's requests do not count.
        of_pod: Whether these are of the whole pod: then only its requests count.

    Raises:
        ValueError: A quantity is invalid.
    """
    wanted, held = _RESOURCES.decode(asked), _RESOURCES.decode(has)
    if held is None:
        return asked
    stated = stated_requests(wanted)
    sources = [held.requests, _ALLOCATED.decode(allocated)]
    if not cannot_be_resized:
        sources.append(stated)
    most: dict[str, int] = {}
    counted: dict[str, Quantity] = {}
    for source in sources:
        for name, quantity in (source or {}).items():
            if of_pod and name not in stated:
                continue
            amount = amount_of(name, quantity)
            if amount >= most.get(name, 0):
                most[name], counted[name] = amount, quantity
    same = most == amounts_of(stated)
    return asked if same else Raw(_ENCODER.encode({"requests": counted}))
