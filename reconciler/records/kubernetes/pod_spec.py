"""Decodes the part of a pod's spec that replicas share, once for all of them."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated

from msgspec import Meta
from msgspec.json import Decoder

from reconciler.model.cluster import (
    DEFAULT_SCHEDULER,
    HostPort,
    PodAffinityTerm,
    PodPreference,
    PodSpec,
    Preference,
    Resources,
    Toleration,
    TopologySpreadConstraint,
)
from reconciler.model.frozen import NO_LABELS, FrozenMap, Labels
from reconciler.model.selectors import NodeSelector
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
from reconciler.records.kubernetes.limits import (
    BASIC,
    CONTAINERS_MAX,
    HOST_PORTS_MAX,
    LINES_MAX,
    NAME_MAX,
    NODE_TERMS_MAX,
    POD_TERMS_MAX,
    RESOURCES_MAX,
    SPEC_BYTES_MAX,
    SPREAD_MAX,
    TOLERATIONS_MAX,
    Size,
    beyond,
    label_selector_size,
    node_term_size,
    size_beyond,
    total,
)
from reconciler.records.kubernetes.omitted_rules import (
    EVERY_POD,
    EVERY_POD_OF_ITS_NAMESPACE,
    without_rules,
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


class _ClaimWire(Wire):
    """A claim of devices: only its presence counts."""


class SharedSpecWire(Wire):
    """spec of a pod or a pod template, without node, volumes and gates."""

    containers: tuple[ContainerWire, ...] | None = None
    init_containers: tuple[ContainerWire, ...] | None = None
    node_selector: dict[str, str] | None = None
    affinity: _AffinityWire | None = None
    tolerations: tuple[_TolerationWire, ...] | None = None
    topology_spread_constraints: tuple[_SpreadWire, ...] | None = None
    resource_claims: tuple[_ClaimWire, ...] | None = None
    overhead: dict[str, Quantity] | None = None
    resources: ResourceRequirementsWire | None = None
    priority: Int32 | None = None
    preemption_policy: str | None = None
    scheduler_name: str | None = None
    termination_grace_period_seconds: Annotated[int, Meta(lt=2**31)] | None = None
    restart_policy: str | None = None
    host_network: bool | None = None


_DECODER = Decoder(SharedSpecWire)
_ENDING = frozenset({"OnFailure", "Never"})
"""Values of restartPolicy with which a pod ends; without one it is Always, the default."""


def decode_pod_spec(shared: bytes, *, local_storage: bool, excess: str = "") -> PodSpec:
    """Build the model's PodSpec from the JSON of a spec.

    Of a pod with more than `limits` allows only the parts within the limits are kept. What replaces
    the others takes more rather than less, since the pod may run on a node.

    Args:
        shared: The JSON.
        local_storage: Whether any of its volumes would be lost with its node.
        excess: What its volumes, which are not part of the JSON, have too much of, in words.

    Raises:
        ValueError: It cannot be read (msgspec's errors are ValueErrors).
    """
    wire = _DECODER.decode(shared)
    affinity = wire.affinity or _AffinityWire()
    node = affinity.node_affinity or _NodeAffinityWire()
    grace = wire.termination_grace_period_seconds
    too_complex = _Excess(excess)
    too_complex.add(
        beyond(
            len(wire.containers or ()) + len(wire.init_containers or ()),
            CONTAINERS_MAX,
            "containers",
        )
    )
    if wire.resource_claims:
        too_complex.add("asks for devices by resourceClaims, which are not planned for")
    requests, devices_hidden = _requests(wire, too_complex)
    ports, ports_hidden = _ports_within(wire, too_complex)
    built = PodSpec(
        requests=requests,
        node_selector=_node_selector(wire, too_complex),
        node_affinity=_node_affinity(node, too_complex),
        node_preferences=_node_preferences(node, too_complex),
        tolerations=_tolerations(wire, too_complex),
        pod_affinity=_within(
            _required(affinity.pod_affinity), "required pod affinity terms", too_complex
        ),
        pod_anti_affinity=_anti_affinity(affinity.pod_anti_affinity, too_complex),
        pod_preferences=_pod_preferences(affinity, too_complex),
        topology_spread=_topology_spread(wire, too_complex),
        host_ports=ports,
        priority=wire.priority or 0,
        preempts=wire.preemption_policy != "Never",
        scheduler_name=(wire.scheduler_name or DEFAULT_SCHEDULER)[:NAME_MAX],
        termination_grace_seconds=30 if grace is None else max(0, grace),
        ends_by_itself=wire.restart_policy in _ENDING,
        local_storage=local_storage,
        takes_all=devices_hidden or ports_hidden,
    )
    if too_complex.add(beyond(len(shared), SPEC_BYTES_MAX, "bytes of requests and rules")):
        built = without_rules(built)
    return replace(built, too_complex=too_complex.first) if too_complex.first else built


@dataclass(slots=True)
class _Excess:
    """What the pod has too much of: the first finding is reported."""

    first: str

    def add(self, found: str) -> bool:
        """Note an excess in words, unless it is empty; return whether it is one."""
        self.first = self.first or found
        return bool(found)


def _requests(wire: SharedSpecWire, excess: _Excess) -> tuple[Resources, bool]:
    """Return effective requests, and whether names beyond the limit were left out."""
    requests = pod_requests(
        wire.containers or (), wire.init_containers or (), wire.resources, wire.overhead
    )
    others = len(requests.keys() - BASIC)
    if not excess.add(beyond(others, RESOURCES_MAX, "extended resources")):
        return requests, False
    return FrozenMap((name, n) for name, n in requests.items() if name in BASIC), True


def _ports_within(wire: SharedSpecWire, excess: _Excess) -> tuple[tuple[HostPort, ...], bool]:
    """Return host ports, and whether there were too many, so that they were left out."""
    ports = _host_ports(wire)
    if excess.add(beyond(len(ports), HOST_PORTS_MAX, "host ports")):
        return (), True
    return ports, False


def _node_selector(wire: SharedSpecWire, excess: _Excess) -> Labels:
    too_many = beyond(len(wire.node_selector or {}), LINES_MAX, "node selector entries")
    return NO_LABELS if excess.add(too_many) else labels_of(wire.node_selector)


def _node_affinity(wire: _NodeAffinityWire, excess: _Excess) -> NodeSelector | None:
    required = wire.required_during_scheduling_ignored_during_execution
    terms = (required.node_selector_terms if required else None) or ()
    too_many = size_beyond(
        total(map(node_term_size, terms)), NODE_TERMS_MAX, "required node affinity terms"
    )
    return None if excess.add(too_many) else node_selector_of(required)


def _node_preferences(wire: _NodeAffinityWire, excess: _Excess) -> tuple[Preference, ...]:
    preferred = wire.preferred_during_scheduling_ignored_during_execution or ()
    too_many = size_beyond(
        total(node_term_size(term.preference) for term in preferred),
        NODE_TERMS_MAX,
        "preferred node affinity terms",
    )
    if excess.add(too_many):
        return ()
    return tuple(
        Preference(weight=term.weight, term=node_selector_term_of(term.preference))
        for term in preferred
    )


def _tolerations(wire: SharedSpecWire, excess: _Excess) -> tuple[Toleration, ...]:
    tolerations = wire.tolerations or ()
    if excess.add(beyond(len(tolerations), TOLERATIONS_MAX, "tolerations")):
        return ()
    return tuple(map(_toleration, tolerations))


def _terms_beyond(terms: Iterable[_PodTermWire], what: str) -> str:
    return size_beyond(total(map(_term_size, terms)), POD_TERMS_MAX, what)


def _term_size(wire: _PodTermWire) -> Size:
    _, lines, values = label_selector_size(wire.label_selector)
    _, more, others = label_selector_size(wire.namespace_selector)
    keys = len(wire.match_label_keys or ()) + len(wire.mismatch_label_keys or ())
    return 1, lines + more + keys, values + others + len(wire.namespaces or ())


def _within(
    terms: tuple[_PodTermWire, ...], what: str, excess: _Excess
) -> tuple[PodAffinityTerm, ...]:
    return () if excess.add(_terms_beyond(terms, what)) else tuple(map(_term, terms))


def _anti_affinity(wire: _PodAffinityWire | None, excess: _Excess) -> tuple[PodAffinityTerm, ...]:
    """Return required anti-affinity; if there is too much, a stand-in and the first terms.

    A running pod keeps others off its domains, whether or not it is itself planned for. Terms that
    are left out may mean nobody: the stand-in closes the pod's node, never a whole zone.
    """
    terms = _required(wire)
    if not excess.add(_terms_beyond(terms, "required pod anti-affinity terms")):
        return tuple(map(_term, terms))
    abroad = any(term.namespaces or term.namespace_selector for term in terms)
    kept: list[_PodTermWire] = []
    for term in terms:
        if _terms_beyond([*kept, term], "terms"):
            break
        kept.append(term)
    stand_in = EVERY_POD if abroad else EVERY_POD_OF_ITS_NAMESPACE
    return (stand_in, *map(_term, kept[: POD_TERMS_MAX - 1]))


def _pod_preferences(affinity: _AffinityWire, excess: _Excess) -> tuple[PodPreference, ...]:
    signed = ((affinity.pod_affinity, 1), (affinity.pod_anti_affinity, -1))
    found = [(term, sign) for wire, sign in signed for term in _preferred(wire)]
    terms = [term.pod_affinity_term for term, _ in found]
    if excess.add(_terms_beyond(terms, "preferred pod affinity and anti-affinity terms")):
        return ()
    return tuple(
        PodPreference(weight=sign * term.weight, term=_term(term.pod_affinity_term))
        for term, sign in found
    )


def _topology_spread(wire: SharedSpecWire, excess: _Excess) -> tuple[TopologySpreadConstraint, ...]:
    constraints = wire.topology_spread_constraints or ()
    sizes = (label_selector_size(constraint.label_selector) for constraint in constraints)
    keys = sum(len(constraint.match_label_keys or ()) for constraint in constraints)
    terms, lines, values = total(sizes)
    too_many = size_beyond((terms, lines + keys, values), SPREAD_MAX, "topologySpreadConstraints")
    return () if excess.add(too_many) else tuple(map(_spread, constraints))


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


def _required(wire: _PodAffinityWire | None) -> tuple[_PodTermWire, ...]:
    if wire is None:
        return ()
    return wire.required_during_scheduling_ignored_during_execution or ()


def _preferred(wire: _PodAffinityWire | None) -> tuple[_PodPreferenceWire, ...]:
    if wire is None:
        return ()
    return wire.preferred_during_scheduling_ignored_during_execution or ()


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
    """Return ports that running containers use on the node; on the host's network all count."""
    running = [
        *(wire.containers or ()),
        *(container for container in wire.init_containers or () if container.restartable),
    ]
    ports = set()
    for port in (port for container in running for port in container.ports or ()):
        number = port.host_port or (port.container_port if wire.host_network else 0)
        if not number:
            continue
        if not 0 < number < 65_536:
            raise ValueError(f"{number} is not a valid port")
        ports.add(
            HostPort(
                address=port.host_ip or "0.0.0.0",  # noqa: S104 - the API's word for any address
                protocol=port.protocol or "TCP",
                port=number,
            )
        )
    return tuple(sorted(ports))
