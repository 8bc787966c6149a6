"""Pod classes: pods that no filter can tell apart are one class, and all work is per class."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from reconciler.model.cluster import (
    HostPort,
    Namespace,
    Pod,
    PodAffinityTerm,
    PodSpec,
    PodTraits,
    TopologySpreadConstraint,
)
from reconciler.model.frozen import NO_LABELS, Labels
from reconciler.model.grouping import append_each
from reconciler.model.selectors import LabelSelector
from reconciler.planner.placement.arrays import IntArray
from reconciler.planner.placement.dimensions import dimensions_for
from reconciler.planner.placement.kinds import ZONE
from reconciler.planner.placement.label_keys import (
    NOWHERE,
    OfferedNames,
    node_label_keys,
    reads_names,
    selector_keys,
    terms_of,
    topology_keys,
    with_label_keys,
)
from reconciler.planner.placement.namespaces import NamespaceIndex
from reconciler.planner.placement.static_constraints import StaticConstraints
from reconciler.planner.placement.volume_needs import NO_VOLUMES, VolumeNeeds
from reconciler.planner.placement.volumes import VolumeResolver


@dataclass(slots=True, eq=False)
class PodClass:
    """Pods with the same spec and namespace, and equal labels as far as selectors read them."""

    number: int
    spec: PodSpec
    namespace: str
    labels: Labels
    volumes: VolumeNeeds
    deleting: bool
    requests: IntArray
    """Amount per dimension."""
    columns: IntArray
    """The dimensions that it requests."""
    static: int
    """Classes with the same static constraints share this number."""
    size: float
    """The larger share of CPU and memory relative to each other: large pods are hard to place."""
    anti_affinity: tuple[PodAffinityTerm, ...] = ()
    affinity: tuple[PodAffinityTerm, ...] = ()
    spread: tuple[TopologySpreadConstraint, ...] = ()
    """Required terms with matchLabelKeys merged in and namespaces resolved."""
    preferences: tuple[tuple[int, PodAffinityTerm], ...] = ()
    """Preferred inter-pod terms, likewise, each with its weight, which is negative for
    anti-affinity."""
    soft_spread: tuple[TopologySpreadConstraint, ...] = ()

    @property
    def follows_claim(self) -> bool:
        """Return whether its zone is that of the other users of a claim.

        False with a required affinity: then the neighbours determine the zone.
        """
        return bool(self.volumes.zone_claim) and not self.affinity


Group = tuple[PodClass, list[Pod]]
"""Pods of one class."""


_NEAR_NOWHERE = (PodAffinityTerm(topology_key=NOWHERE, selector=None),)
_SPREAD_NOWHERE = (
    TopologySpreadConstraint(topology_key=NOWHERE, max_skew=1, hard=True, selector=None),
)
"""Stands for all rules of a class that has a rule which no node can satisfy."""


_Ports = dict[HostPort, bool]
"""Host ports of a namespace, and whether all pods that ask for one have a node."""


class ClassTable:
    """Interns classes over all pods of a snapshot."""

    def __init__(
        self,
        pods: Iterable[Pod],
        namespaces: Iterable[Namespace],
        resolver: VolumeResolver,
        offered: OfferedNames | None = None,
    ) -> None:
        """Build the table; `offered` is what nodes have and new ones would.

        None for all that pods ask for.
        """
        self._resolver = resolver
        self._namespaces = {n.name: n.labels for n in namespaces}
        self._specs: dict[int, PodSpec] = {}
        self._canonical: dict[PodSpec, PodSpec] = {}
        self._volumes: dict[VolumeNeeds, VolumeNeeds] = {NO_VOLUMES: NO_VOLUMES}
        choosing, ports = self._read(pods)
        self._named = NamespaceIndex(self._namespaces)
        specs = list(self._canonical)
        asked = topology_keys(specs)
        if any(needs.zone_claim for needs in self._volumes):
            asked |= {ZONE}
        self._everywhere = asked if offered is None else asked & offered.label_keys
        self.topology_keys = self._everywhere | ({NOWHERE} if asked > self._everywhere else set())
        self.node_label_keys = node_label_keys(choosing, self._volumes)
        self.reads_names = reads_names(choosing, self._volumes)
        self._pod_label_keys = selector_keys(specs)
        self._by_namespace = any(terms_of(s) or s.topology_spread for s in specs)
        drivers = {driver for needs in self._volumes for driver in needs.drivers}
        resources = None if offered is None else offered.resources
        self.dimensions = dimensions_for(specs, drivers, map(_by_need, ports), resources)
        self.classes: list[PodClass] = []
        self.daemons: set[int] = set()
        """Numbers of the classes whose pods new nodes come with."""
        self._index: dict[tuple[object, ...], PodClass] = {}
        self._seen: dict[tuple[int, int, bool], tuple[PodTraits, Labels, PodClass]] = {}
        """The same by the `id` of traits and labels, which the values keep alive."""
        self._alone: dict[tuple[int, int], tuple[IntArray, IntArray, int, float]] = {}
        """By the `id` of spec and volumes, which `_canonical` and `_volumes` keep alive."""
        self._static: dict[tuple[object, ...], int] = {}
        """By what they are made from; needs by `id`, as `_volumes` keeps one object of each."""
        self.statics: list[StaticConstraints] = []

    def _read(self, pods: Iterable[Pod]) -> tuple[Collection[PodSpec], Collection[_Ports]]:
        """Intern the pods' specs, volumes and namespaces.

        Returns:
            The specs of pods that choose a node, and the host ports of each namespace.
        """
        choosing: dict[int, PodSpec] = {}
        ports: dict[str, _Ports] = {}
        for pod in pods:
            spec = self._intern(pod.spec)
            if spec.host_ports:
                _add_ports(ports.setdefault(pod.key.namespace, {}), pod)
            # Each pod of a DaemonSet names its node, and is never placed again.
            if not (pod.node_name and (pod.daemon or pod.mirror)):
                choosing[id(spec)] = spec
            if pod.claims or pod.ebs_volume_ids:
                needs = self._resolver.needs(pod)
                self._volumes.setdefault(needs, needs)
            self._namespaces.setdefault(pod.key.namespace, NO_LABELS)
        return choosing.values(), ports.values()

    def _intern(self, spec: PodSpec) -> PodSpec:
        """Return the one object that stands for all specs equal to this one."""
        known = self._specs.get(id(spec))
        if known is None:
            known = self._canonical.setdefault(spec, spec)
            self._specs[id(spec)] = known
        return known

    def _shown(self, labels: Labels) -> frozenset[tuple[str, str]]:
        """Return the labels that selectors read."""
        read = self._pod_label_keys
        if len(read) < len(labels):
            return frozenset([(key, labels[key]) for key in read if key in labels])
        return frozenset([item for item in labels.items() if item[0] in read])

    def parted(self, pods: Sequence[Pod]) -> Iterable[Sequence[Pod]]:
        """Return the pods of one group in parts of one class each, in the order of the pods.

        Args:
            pods: At least one pod; all have one `traits` in common.
        """
        if pods[0].traits.volumes:
            return [[pod] for pod in pods]
        if not self._pod_label_keys or len(pods) == 1:
            return [pods]
        every = [pod.labels for pod in pods]
        found: dict[frozenset[tuple[str, str]], list[Pod]] = {}
        distinct = {id(labels): labels for labels in every}.items()
        part_of = {each: found.setdefault(self._shown(labels), []) for each, labels in distinct}
        if len(found) == 1:
            return [pods]
        append_each(map(part_of.__getitem__, map(id, every)), pods)
        return found.values()

    def of_daemon(self, pod: Pod) -> PodClass:
        """Return the class of a daemon's pod that new nodes come with."""
        pod_class = self.of(pod, bound=False)
        self.daemons.add(pod_class.number)
        return pod_class

    def of(self, pod: Pod, *, bound: bool) -> PodClass:
        """Return the class of a pod.

        Pods being deleted have classes of their own, as topology spread ignores them. Replicas are
        asked about again and again: for those without volumes it is one look-up.
        """
        if pod.traits.volumes:
            return self._find(pod, bound=bound)
        key = (id(pod.traits), id(pod.labels) if self._pod_label_keys else 0, bound)
        seen = self._seen.get(key)
        if seen is None:
            seen = self._seen[key] = (pod.traits, pod.labels, self._find(pod, bound=bound))
        return seen[2]

    def grouped(self, pods: Iterable[Pod]) -> Iterable[Group]:
        """Return bound pods by class, in the order of the first of each.

        Most pods of a cluster are asked about in every plan: for those whose replicas were seen it
        costs no call.
        """
        found: dict[int, Group] = {}
        seen, labelled = self._seen, bool(self._pod_label_keys)
        for pod in pods:
            known = seen.get((id(pod.traits), id(pod.labels) if labelled else 0, True))
            pod_class = known[2] if known is not None else self.of(pod, bound=True)
            if pod_class.number in found:
                found[pod_class.number][1].append(pod)
            else:
                found[pod_class.number] = (pod_class, [pod])
        return found.values()

    def _find(self, pod: Pod, *, bound: bool) -> PodClass:
        spec = self._intern(pod.spec)
        shown = self._shown(pod.labels)
        namespace = pod.key.namespace if self._by_namespace else ""
        needs = NO_VOLUMES
        if pod.claims or pod.ebs_volume_ids:
            needs = self._resolver.needs(pod)
            needs = self._volumes.setdefault(needs, needs)
        deleting = pod.deleting and bound
        key = (id(spec), namespace, shown, id(needs), deleting)
        known = self._index.get(key)
        if known is None:
            labels = Labels(sorted(shown)) if shown else NO_LABELS
            known = self._make(spec, namespace, labels, needs, deleting=deleting)
            self._index[key] = known
            if deleting:  # its successor is asked about, and counters read all classes first
                self._find(pod, bound=False)
        return known

    def volumes_of(self, pod: Pod) -> VolumeNeeds:
        """Return what the volumes of a pod require now."""
        return self._resolver.needs(pod)

    def _make(
        self, spec: PodSpec, namespace: str, labels: Labels, needs: VolumeNeeds, *, deleting: bool
    ) -> PodClass:
        alone = self._alone.get((id(spec), id(needs)))
        if alone is None:
            alone = self._alone[id(spec), id(needs)] = self._taken_alone(spec, needs)
        requests, columns, static, size = alone
        made = PodClass(
            number=len(self.classes),
            spec=spec,
            namespace=namespace,
            labels=labels,
            volumes=needs,
            deleting=deleting,
            requests=requests,
            columns=columns,
            static=static,
            size=size,
        )
        if terms_of(spec) or spec.topology_spread:
            self._add_rules(made)
        self.classes.append(made)
        return made

    def _add_rules(self, made: PodClass) -> None:
        """Return the rules between pods; most specs have none."""
        spec, namespace, labels = made.spec, made.namespace, made.labels
        preferred = self._resolved(tuple(p.term for p in spec.pod_preferences), namespace, labels)
        weights = (p.weight for p in spec.pod_preferences)
        # Anti-affinity on a label that no node has is always satisfied.
        here = tuple(t for t in spec.pod_anti_affinity if t.topology_key in self._everywhere)
        made.anti_affinity = self._resolved(here, namespace, labels)
        made.affinity = _NEAR_NOWHERE
        if all(t.topology_key in self._everywhere for t in spec.pod_affinity):
            made.affinity = self._resolved(spec.pod_affinity, namespace, labels)
        made.spread = _SPREAD_NOWHERE
        hard = [c for c in spec.topology_spread if c.hard]
        if all(c.topology_key in self._everywhere for c in hard):
            made.spread = tuple(_merged(c, labels) for c in hard)
        made.preferences = tuple(zip(weights, preferred, strict=True))
        made.soft_spread = tuple(_merged(c, labels) for c in spec.topology_spread if not c.hard)

    def _taken_alone(
        self, spec: PodSpec, needs: VolumeNeeds
    ) -> tuple[IntArray, IntArray, int, float]:
        """Return amounts per dimension, the requested dimensions, the static number, the size."""
        key = (spec.node_selector, spec.node_affinity, spec.tolerations, id(needs))
        number = self._static.get(key)
        if number is None:
            number = self._static[key] = len(self.statics)
            self.statics.append(
                StaticConstraints(
                    node_selector=spec.node_selector,
                    node_affinity=spec.node_affinity,
                    tolerations=spec.tolerations,
                    volumes=needs,
                )
            )
        row, columns = self.dimensions.of_pod(
            spec.requests, spec.host_ports, needs.attachments, takes_all=spec.takes_all
        )
        size = max(spec.requests.get("cpu", 0) / 1000, spec.requests.get("memory", 0) / 2**32)
        return row, columns, number, size

    def _resolved(
        self, terms: tuple[PodAffinityTerm, ...], namespace: str, labels: Labels
    ) -> tuple[PodAffinityTerm, ...]:
        return tuple(
            PodAffinityTerm(
                topology_key=term.topology_key,
                selector=with_label_keys(
                    term.selector, labels, term.match_label_keys, term.mismatch_label_keys
                ),
                namespaces=self._namespaces_of(term, namespace),
            )
            for term in terms
        )

    def _namespaces_of(self, term: PodAffinityTerm, namespace: str) -> frozenset[str]:
        """Return the namespaces of a term: the pod's own if it has neither selector nor list."""
        if term.namespace_selector is None:
            return term.namespaces or frozenset({namespace})
        chosen = self._named.chosen_by(term.namespace_selector)
        return chosen | term.namespaces if term.namespaces else chosen


def _add_ports(known: _Ports, pod: Pod) -> None:
    """Note the pod's host ports."""
    has_node = pod.node_name is not None
    for port in pod.spec.host_ports:
        known[port] = known.get(port, True) and has_node


def _by_need(ports: _Ports) -> Sequence[HostPort]:
    """Return the host ports, those that pods without a node ask for first."""
    return sorted(ports, key=lambda port: (ports[port], port))


def _merged(constraint: TopologySpreadConstraint, labels: Labels) -> TopologySpreadConstraint:
    """Return the constraint as kube-scheduler reads it for a pod with these labels.

    A selector that is empty after that counts no pod, like a missing one.

    Source: kube-scheduler plugins/podtopologyspread/common.go, countPodsMatchSelector.
    """
    selector = with_label_keys(constraint.selector, labels, constraint.match_label_keys)
    return TopologySpreadConstraint(
        topology_key=constraint.topology_key,
        max_skew=constraint.max_skew,
        hard=True,
        selector=None if selector == LabelSelector() else selector,
        min_domains=constraint.min_domains,
        honor_node_affinity=constraint.honor_node_affinity,
        honor_node_taints=constraint.honor_node_taints,
    )
