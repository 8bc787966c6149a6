"""Computes how much of each resource a pod requests, as kube-scheduler counts it.

Source: k8s.io/component-helpers/resource PodRequests, and the API server's defaulting of requests
from limits, which is missing in some files.
"""

from collections.abc import Iterable, Mapping

from msgspec import field

from reconciler.model.cluster import Resources
from reconciler.model.frozen import FrozenMap
from reconciler.records.kubernetes.fields import Quantity, Wire, amounts_of


class ResourceRequirementsWire(Wire):
    """resources of a container or a pod."""

    requests: dict[str, Quantity] | None = None
    limits: dict[str, Quantity] | None = None


class ContainerPortWire(Wire):
    """ports[] of a container."""

    container_port: int | None = None
    host_port: int | None = None
    host_ip: str | None = field(name="hostIP", default=None)
    protocol: str | None = None


class ContainerWire(Wire):
    """A container or init container."""

    resources: ResourceRequirementsWire | None = None
    ports: tuple[ContainerPortWire, ...] | None = None
    restart_policy: str | None = None

    @property
    def restartable(self) -> bool:
        """Return whether an init container is a sidecar, which keeps running."""
        return self.restart_policy == "Always"


def stated_requests(wire: ResourceRequirementsWire | None) -> dict[str, Quantity]:
    """Return requests as they were written; a missing one is replaced by its limit."""
    return {} if wire is None else {**(wire.limits or {}), **(wire.requests or {})}


def requested(wire: ResourceRequirementsWire | None) -> dict[str, int]:
    """Return requests; a missing one is replaced by its limit."""
    return amounts_of(stated_requests(wire))


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for key, value in more.items():
        total[key] = total.get(key, 0) + value


def _raise_to(total: dict[str, int], least: Mapping[str, int]) -> None:
    for key, value in least.items():
        total[key] = max(total.get(key, 0), value)


def containers_requests(
    containers: Iterable[ContainerWire], init_containers: Iterable[ContainerWire]
) -> dict[str, int]:
    """Return what the containers need: all together, or at the worst moment of starting.

    A sidecar counts from its start, so it adds to every init container after it.
    """
    running: dict[str, int] = {}
    for container in containers:
        _add(running, requested(container.resources))
    sidecars: dict[str, int] = {}
    starting: dict[str, int] = {}
    for container in init_containers:
        now = requested(container.resources)
        if container.restartable:
            _add(running, now)
            _add(sidecars, now)
            _raise_to(starting, sidecars)
        else:
            _add(now, sidecars)
            _raise_to(starting, now)
    _raise_to(running, starting)
    return running


def _pod_level_applies(resource: str) -> bool:
    """Return whether pod-level requests apply, as IsSupportedPodLevelResource does."""
    return resource in {"cpu", "memory"} or resource.startswith("hugepages-")


def pod_requests(
    containers: Iterable[ContainerWire],
    init_containers: Iterable[ContainerWire],
    pod_level: ResourceRequirementsWire | None,
    overhead: Mapping[str, Quantity] | None,
) -> Resources:
    """Return a pod's effective requests with overhead and its slot (`pods: 1`), without zeros.

    Raises:
        ValueError: A quantity is invalid, negative or absurdly large.
    """
    total = containers_requests(containers, init_containers)
    if pod_level is not None:
        for key, value in amounts_of(pod_level.requests).items():
            if _pod_level_applies(key):
                total[key] = value
        for key, value in amounts_of(pod_level.limits).items():
            if _pod_level_applies(key):
                total.setdefault(key, value)
    _add(total, amounts_of(overhead))
    total["pods"] = 1
    return FrozenMap((key, value) for key, value in sorted(total.items()) if value)
