"""The part of a pod's spec that replicas share, decoded once for all of them."""

from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta
from msgspec.json import Decoder

from reconciler.model.cluster import (
    HostPort,
    PodAffinityTerm,
    PodPreference,
    PodSpec,
    Preference,
    Toleration,
    TopologySpreadConstraint,
)
from reconciler.records.kubernetes.fields import (
    LabelSelectorWire,
    NodeSelectorTermWire,
    NodeSelectorWire,
    Quantity,
    Wire,
    label_selector_of,
    labels_of,
    node_selector_of,
    node_selector_term_of,
)
from reconciler.records.kubernetes.requests import (
    ContainerWire,
    ResourceRequirementsWire,
    pod_requests,
)

Int32 = Annotated[int, Meta(ge=-(2**31), lt=2**31)]
Weight = Annotated[int, Meta(ge=0, le=100)]


class _NodePreferenceWire(Wire):
    preference: NodeSelectorTermWire
    weight: Weight = 1


class _NodeAffinityWire(Wire):
    required_during_scheduling_ignored_during_execution: NodeSelectorWire | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[_NodePreferenceWire, ...] | None = (
        None
    )


class _PodTermWire(Wire):
    topology_key: str
    label_selector: LabelSelectorWire | None = None
    namespaces: tuple[str, ...] | None = None
    namespace_selector: LabelSelectorWire | None = None
    match_label_keys: tuple[str, ...] | None = None
    mismatch_label_keys: tuple[str, ...] | None = None


class _PodPreferenceWire(Wire):
    pod_affinity_term: _PodTermWire
    weight: Weight = 1


class _PodAffinityWire(Wire):
    required_during_scheduling_ignored_during_execution: tuple[_PodTermWire, ...] | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[_PodPreferenceWire, ...] | None = (
        None
    )


class _AffinityWire(Wire):
    node_affinity: _NodeAffinityWire | None = None
    pod_affinity: _PodAffinityWire | None = None
    pod_anti_affinity: _PodAffinityWire | None = None


class _TolerationWire(Wire):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class _SpreadWire(Wire):
    topology_key: str
    max_skew: Annotated[int, Meta(ge=1, lt=2**31)]
    when_unsatisfiable: str | None = None
    label_selector: LabelSelectorWire | None = None
    min_domains: Annotated[int, Meta(ge=1, lt=2**31)] | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] | None = None


class SharedSpecWire(Wire):
    """spec of a pod or a pod template, without node, volumes and gates."""

    containers: tuple[ContainerWire, ...] | None = None
    init_containers: tuple[ContainerWire, ...] | None = None
    node_selector: dict[str, str] | None = None
    affinity: _AffinityWire | None = None
    tolerations: tuple[_TolerationWire, ...] | None = None
    topology_spread_constraints: tuple[_SpreadWire, ...] | None = None
    overhead: dict[str, Quantity] | None = None
    resources: ResourceRequirementsWire | None = None
    priority: Int32 | None = None
    preemption_policy: str | None = None
    scheduler_name: str | None = None
    termination_grace_period_seconds: Annotated[int, Meta(lt=2**31)] | None = None
    host_network: bool | None = None


_DECODER = Decoder(SharedSpecWire)


def decode_pod_spec(shared: bytes, *, local_storage: bool) -> PodSpec:
    """Build the model's PodSpec from the JSON of a spec.

    Raises:
        ValueError: It cannot be read (msgspec's errors are ValueErrors).
    """
    wire = _DECODER.decode(shared)
    affinity = wire.affinity or _AffinityWire()
    node = affinity.node_affinity or _NodeAffinityWire()
    grace = wire.termination_grace_period_seconds
    return PodSpec(
        requests=pod_requests(
            wire.containers or (), wire.init_containers or (), wire.resources, wire.overhead
        ),
        node_selector=labels_of(wire.node_selector),
        node_affinity=node_selector_of(node.required_during_scheduling_ignored_during_execution),
        node_preferences=tuple(
            Preference(weight=each.weight, term=node_selector_term_of(each.preference))
            for each in node.preferred_during_scheduling_ignored_during_execution or ()
        ),
        tolerations=tuple(map(_toleration, wire.tolerations or ())),
        pod_affinity=_required(affinity.pod_affinity),
        pod_anti_affinity=_required(affinity.pod_anti_affinity),
        pod_preferences=(
            *_preferred(affinity.pod_affinity, 1),
            *_preferred(affinity.pod_anti_affinity, -1),
        ),
        topology_spread=tuple(map(_spread, wire.topology_spread_constraints or ())),
        host_ports=_host_ports(wire),
        priority=wire.priority or 0,
        preempts=wire.preemption_policy != "Never",
        scheduler_name=wire.scheduler_name or "default-scheduler",
        termination_grace_seconds=30 if grace is None else max(0, grace),
        local_storage=local_storage,
    )


def _toleration(wire: _TolerationWire) -> Toleration:
    return Toleration(
        key=wire.key or "",
        operator=wire.operator or "Equal",
        value=wire.value or "",
        effect=wire.effect or "",
    )


def _term(wire: _PodTermWire) -> PodAffinityTerm:
    return PodAffinityTerm(
        topology_key=wire.topology_key,
        selector=label_selector_of(wire.label_selector),
        namespaces=frozenset(wire.namespaces or ()),
        namespace_selector=label_selector_of(wire.namespace_selector),
        match_label_keys=wire.match_label_keys or (),
        mismatch_label_keys=wire.mismatch_label_keys or (),
    )


def _required(wire: _PodAffinityWire | None) -> tuple[PodAffinityTerm, ...]:
    if wire is None:
        return ()
    return tuple(map(_term, wire.required_during_scheduling_ignored_during_execution or ()))


def _preferred(wire: _PodAffinityWire | None, sign: int) -> Iterable[PodPreference]:
    if wire is None:
        return
    for each in wire.preferred_during_scheduling_ignored_during_execution or ():
        yield PodPreference(weight=sign * each.weight, term=_term(each.pod_affinity_term))


def _spread(wire: _SpreadWire) -> TopologySpreadConstraint:
    return TopologySpreadConstraint(
        topology_key=wire.topology_key,
        max_skew=wire.max_skew,
        hard=wire.when_unsatisfiable != "ScheduleAnyway",
        selector=label_selector_of(wire.label_selector),
        min_domains=wire.min_domains or 1,
        honor_node_affinity=wire.node_affinity_policy != "Ignore",
        honor_node_taints=wire.node_taints_policy == "Honor",
        match_label_keys=wire.match_label_keys or (),
    )


def _host_ports(wire: SharedSpecWire) -> tuple[HostPort, ...]:
    """Ports taken on the node by what keeps running; a pod on the host's network takes them all."""
    running = [
        *(wire.containers or ()),
        *(each for each in wire.init_containers or () if each.restartable),
    ]
    ports = set()
    for port in (port for container in running for port in container.ports or ()):
        number = port.host_port or (port.container_port if wire.host_network else 0)
        if not number:
            continue
        if not 0 < number < 65_536:
            raise ValueError(f"{number} is no port")
        ports.add(
            HostPort(
                address=port.host_ip or "0.0.0.0",  # noqa: S104 - the API's word for any address
                protocol=port.protocol or "TCP",
                port=number,
            )
        )
    return tuple(sorted(ports))
