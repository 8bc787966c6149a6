"""kube-scheduler's filters as its documentation states them, one pod and one node at a time.

Slow and plain on purpose: the planner's vectorised filters are checked against this. A pod may
rely only on what holds for every label set a promised node may turn out with.
"""

from collections.abc import Iterable, Sequence
from math import ceil

from reconciler.model.cluster import HostPort, Pod, PodAffinityTerm, TopologySpreadConstraint
from reconciler.model.frozen import FrozenMap
from reconciler.model.selectors import (
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
    Operator,
    Requirement,
)
from reconciler.model.snapshot import Snapshot
from tests.properties.places import EBS_ZONE, REGION, ZONE, Place


class KubeScheduler:
    """Answers for one cluster state; pods are added to places by the caller."""

    def __init__(self, snapshot: Snapshot, places: Sequence[Place]) -> None:
        self.places = list(places)
        cluster = snapshot.cluster
        self._pods = [p for p in cluster.pods if p.claims and not p.finished]
        self._namespaces = {n.name: n.labels for n in cluster.namespaces}
        for pod in cluster.pods:
            self._namespaces.setdefault(pod.key.namespace, FrozenMap())
        self._claims = {(c.namespace, c.name): c for c in cluster.claims}
        self._volumes = {v.name: v for v in cluster.volumes}
        self._classes = {c.name: c for c in cluster.storage_classes}

    # ---- filters that read the pod and the node only --------------------------------------

    def static_refusal(self, pod: Pod, place: Place) -> str:
        """The first of NodeUnschedulable, NodeAffinity, TaintToleration, volumes; or nothing."""
        spec = pod.spec
        if not place.usable:
            return "unschedulable"
        for labels in place.variants:
            if any(labels.get(k) != v for k, v in spec.node_selector.items()):
                return "node-selector"
            if spec.node_affinity and not spec.node_affinity.matches(labels, place.name):
                return "node-affinity"
        for taint in place.taints:
            hard = taint.effect in {"NoSchedule", "NoExecute"}
            if hard and not any(t.tolerates(taint) for t in spec.tolerations):
                return f"taint {taint.key}"
        return self._volume_refusal(pod, place)

    def _volume_refusal(self, pod: Pod, place: Place) -> str:
        for name in pod.claims:
            claim = self._claims.get((pod.key.namespace, name))
            if claim is None or claim.deleting:
                return "volume-binding"
            users = [p for other in self.places for p in other.pods if p.key != pod.key]
            shared = [u for u in users if name in u.claims and u.key.namespace == claim.namespace]
            if shared and "ReadWriteOncePod" in claim.access_modes:
                return "volume-in-use"
            if not claim.volume_bound:
                return "volume-binding"
            selectors = self._volume_selectors(claim.volume_name, claim.storage_class)
            if selectors is None:
                return "volume-binding"
            for selector in selectors:
                if not all(selector.matches(v, place.name) for v in place.variants):
                    return "volume-zone"
        return ""

    def _volume_selectors(
        self, volume_name: str, storage_class: str | None
    ) -> list[NodeSelector] | None:
        if volume_name:
            volume = self._volumes.get(volume_name)
            if volume is None:
                return None
            zones = {k: v for k, v in volume.labels.items() if k in {ZONE, EBS_ZONE, REGION}}
            selectors = [volume.node_affinity] if volume.node_affinity else []
            return selectors + [_label_in(k, v.split("__")) for k, v in zones.items()]
        found = self._classes.get(storage_class or "")
        if found is None or not found.wait_for_first_consumer:
            return None
        return [NodeSelector(terms=found.allowed_topologies)] if found.allowed_topologies else []

    # ---- sums on the node -----------------------------------------------------------------

    def overcommitted(self, pod: Pod, place: Place) -> str:
        """NodeResourcesFit, NodePorts and NodeVolumeLimits with everything that is on the node.

        Room held by balloon pods that run is free for pods that are none.
        """
        others = [
            p
            for p in place.pods
            if not (_preempts(pod) and p.spec.priority < 0 and p.node_name is not None)
        ]
        refusal = self._crowded(pod, place, others)
        if refusal and pod.spec.priority >= 0 and not pod.spec.preempts:
            # It may have come before those that evict the balloon pods which are in its way.
            earlier = [p for p in others if p.node_name is not None or not _preempts(p)]
            refusal = self._crowded(pod, place, earlier)
        return refusal

    def _crowded(self, pod: Pod, place: Place, others: Sequence[Pod]) -> str:
        for resource in pod.spec.requests:
            total = sum(charge(p, place, resource) for p in others)
            if total > place.offer.get(resource, 0):
                return f"insufficient-{resource}: {total} of {place.offer.get(resource, 0)}"
        for port in pod.spec.host_ports:
            for other in others:
                if other.key != pod.key and any(_collide(port, p) for p in other.spec.host_ports):
                    return f"host-port {port.port} with {other.key}"
        return self._volume_limit(pod, place, [p for p in others if p.key != pod.key])

    def _volume_limit(self, pod: Pod, place: Place, beside: Iterable[Pod]) -> str:
        others = {v for p in beside for v in self._attached(p)}
        new = self._attached(pod) - others
        for driver in {driver for driver, _ in new}:
            limit = place.volume_limits.get(driver)
            used = sum(d == driver for d, _ in new | others)
            if limit is not None and used > limit:
                return f"volume-limit {driver}: {used} of {limit}"
        return ""

    def _attached(self, pod: Pod) -> set[tuple[str, str]]:
        """Driver and volume of all that a node attaches for the pod: a set, as a node's are."""
        found = set()
        for name in pod.claims:
            claim = self._claims.get((pod.key.namespace, name))
            volume = self._volumes.get(claim.volume_name) if claim else None
            if volume is not None and volume.csi_driver:
                found.add((volume.csi_driver, volume.name))
            elif claim is not None and claim.storage_class in self._classes and volume is None:
                driver = self._classes[claim.storage_class].provisioner
                found.add((driver, f"{claim.namespace}/{claim.name}"))
        return found

    # ---- rules between pods ---------------------------------------------------------------

    def _selects(self, term: PodAffinityTerm, holder: Pod, other: Pod) -> bool:
        """Whether a term of `holder` means `other`."""
        if term.selector is None or not _with_label_keys(term, holder).matches(other.labels):
            return False
        if term.namespace_selector is None:
            return other.key.namespace in (term.namespaces or {holder.key.namespace})
        name = other.key.namespace
        labels = {"kubernetes.io/metadata.name": name, **self._namespaces[name]}
        return name in term.namespaces or term.namespace_selector.matches(labels)

    def means_itself(self, pod: Pod) -> bool:
        """Whether every affinity term of a pod selects the pod itself."""
        return all(self._selects(term, pod, pod) for term in pod.spec.pod_affinity)

    def anti_affinity_refusal(self, pod: Pod, place: Place) -> str:
        """The pod's own anti-affinity, and that of every pod that is there."""
        for other_place in self.places:
            for other in other_place.pods:
                if other.key == pod.key:
                    continue
                own = [t for t in pod.spec.pod_anti_affinity if self._selects(t, pod, other)]
                theirs = [t for t in other.spec.pod_anti_affinity if self._selects(t, other, pod)]
                for term in own + theirs:
                    if _may_share(pod, place, other, other_place, term.topology_key):
                        return f"pod-anti-affinity with {other.key} by {term.topology_key}"
        return ""

    def affinity_holds(self, pod: Pod, place: Place) -> bool:
        """Every term finds a pod that matches all terms in the domain; or the pod is the first."""
        terms = pod.spec.pod_affinity
        if not terms:
            return self._claims_hold(pod, place)
        group = [
            (q, at)
            for at in self.places
            for q in at.pods
            if q.key != pod.key and all(self._selects(t, pod, q) for t in terms)
        ]
        if any(place.domain(t.topology_key) is None for t in terms):
            return False
        anywhere = any(at.domain(t.topology_key) is not None for _, at in group for t in terms)
        if not anywhere:
            return all(self._selects(t, pod, pod) for t in terms)
        return all(
            any(at is place for _, at in group)
            or all(
                any(at.domain(t.topology_key) == d for _, at in group)
                for d in _certain(place.domain(t.topology_key))
            )
            for t in terms
        )

    def shares_new_volume(self, pod: Pod) -> bool:
        """Whether another pod uses a claim of the pod's whose volume is yet to be made."""
        return any(
            name in other.claims and other.key.namespace == pod.key.namespace
            for name in self._new_volumes(pod)
            for other in self._pods
            if other.key != pod.key
        )

    def follows_into_a_zone(self, pod: Pod) -> bool:
        """Whether such a pod has a place already."""
        return any(self._users_of(name, pod) for name in self._new_volumes(pod))

    def _users_of(self, claim: str, pod: Pod) -> list[Place]:
        """Where other pods of the pod's namespace use the claim."""
        return [
            at
            for at in self.places
            for q in at.pods
            if q.key != pod.key and q.key.namespace == pod.key.namespace and claim in q.claims
        ]

    def _new_volumes(self, pod: Pod) -> list[str]:
        claims = [self._claims.get((pod.key.namespace, name)) for name in pod.claims]
        return [c.name for c in claims if c is not None and not c.volume_name]

    def _claims_hold(self, pod: Pod, place: Place) -> bool:
        """A volume that is yet to be made is in the zone of its first pod, and so are the others.

        Of pods with a required affinity it is left to that (docs/scale-up.md).
        """
        if not self.shares_new_volume(pod):
            return True
        zone = place.domain(ZONE)
        if zone is None:
            return False
        for name in self._new_volumes(pod):
            users = self._users_of(name, pod)
            zones = [at.domain(ZONE) for at in users if at.domain(ZONE) is not None]
            if zones and place not in users and not all(d in zones for d in _certain(zone)):
                return False
        return True

    def spread_load(self, pod: Pod, place: Place) -> int | None:
        """How full the place's fullest domain is for the pod; None where a maxSkew forbids it."""
        hard = [c for c in pod.spec.topology_spread if c.hard]
        load = 0
        for constraint in hard:
            domain = place.domain(constraint.topology_key)
            if domain is None:
                return None
            counts = self._spread_counts(pod, constraint, [c.topology_key for c in hard])
            matches = _matches(_spread_selector(constraint, pod), pod)
            least = min(counts.values(), default=0)
            if len(counts) < constraint.min_domains:
                least = 0
            most = max(counts.get(d, 0) for d in _certain(domain))
            if most + (1 if matches else 0) - least > constraint.max_skew:
                return None
            load = max(load, most)
        return load

    def _spread_counts(
        self, pod: Pod, constraint: TopologySpreadConstraint, keys: Iterable[str]
    ) -> dict[str, int]:
        """Matching pods per domain that exists for the pod."""
        wanted = tuple(keys)
        selector = _spread_selector(constraint, pod)
        counts: dict[str, int] = {}
        for place in self.places:
            domain = place.domain(constraint.topology_key)
            if any(place.domain(key) is None for key in wanted) or isinstance(domain, tuple):
                continue
            if domain is None or not _eligible(pod, place, constraint):
                continue
            matching = sum(
                q.key.namespace == pod.key.namespace
                and q.key != pod.key
                and _matches(selector, q)
                and not (q.deleting and q.node_name is not None)
                for q in place.pods
            )
            counts[domain] = counts.get(domain, 0) + matching
        return counts


def _preempts(pod: Pod) -> bool:
    """Whether kube-scheduler evicts balloon pods for it."""
    return pod.spec.priority >= 0 and pod.spec.preempts


def charge(pod: Pod, place: Place, resource: str) -> int:
    """What the pod takes: inflated where it asked for the node, never beyond what a node has."""
    amount = pod.spec.requests.get(resource, 0)
    if resource not in {"cpu", "memory"} or not place.over_subscription:
        return amount
    inflated = ceil(amount * (10_000 + round(place.over_subscription * 10_000)) / 10_000)
    return max(amount, min(inflated, place.offer.get(resource, 0)))


def _label_in(key: str, values: list[str]) -> NodeSelector:
    requirement = Requirement(key=key, operator="In", values=tuple(values))
    return NodeSelector(terms=(NodeSelectorTerm(expressions=(requirement,)),))


def _collide(one: HostPort, other: HostPort) -> bool:
    any_address = "0.0.0.0"  # noqa: S104 - every address of a node
    same = (one.protocol, one.port) == (other.protocol, other.port)
    return same and (one.address == other.address or any_address in {one.address, other.address})


def _certain(domain: str | tuple[str, ...] | None) -> tuple[str, ...]:
    if domain is None:
        return ()
    return (domain,) if isinstance(domain, str) else domain


def _may_share(pod: Pod, place: Place, other: Pod, other_place: Place, key: str) -> bool:
    """Whether two pods are in one domain, or might turn out to be.

    Where EC2 still chooses the zone every choice must do beside pods that run; how promised nodes
    fall among themselves is left to kube-scheduler (docs/scale-up.md).
    """
    if place is other_place:
        return place.domain(key) is not None
    one, two = place.domain(key), other_place.domain(key)
    if isinstance(one, str) and isinstance(two, str):
        return one == two
    settled = {p for p in (pod, other) if p.node_name is not None}
    return bool(settled) and bool(set(_certain(one)) & set(_certain(two)))


def _with_label_keys(term: PodAffinityTerm, holder: Pod) -> LabelSelector:
    assert term.selector is not None
    lines: tuple[tuple[Operator, tuple[str, ...]], ...] = (
        ("In", term.match_label_keys),
        ("NotIn", term.mismatch_label_keys),
    )
    merged = [
        Requirement(key=k, operator=op, values=(holder.labels[k],))
        for op, keys in lines
        for k in keys
        if k in holder.labels
    ]
    return LabelSelector(
        match_labels=term.selector.match_labels,
        match_expressions=(*term.selector.match_expressions, *merged),
    )


def _spread_selector(constraint: TopologySpreadConstraint, pod: Pod) -> LabelSelector | None:
    if constraint.selector is None:
        return None
    same = {k: pod.labels[k] for k in constraint.match_label_keys if k in pod.labels}
    merged = LabelSelector(
        match_labels=FrozenMap({**constraint.selector.match_labels, **same}),
        match_expressions=constraint.selector.match_expressions,
    )
    return merged if merged.keys() else None  # countPodsMatchSelector: an empty one counts nobody


def _matches(selector: LabelSelector | None, pod: Pod) -> bool:
    return selector is not None and selector.matches(pod.labels)


def _eligible(pod: Pod, place: Place, constraint: TopologySpreadConstraint) -> bool:
    """NodeInclusionPolicy: nodeAffinityPolicy and nodeTaintsPolicy."""
    if constraint.honor_node_affinity and not any(
        all(v.get(k) == w for k, w in pod.spec.node_selector.items())
        and (pod.spec.node_affinity is None or pod.spec.node_affinity.matches(v, place.name))
        for v in place.variants
    ):
        return False
    if constraint.honor_node_taints:
        return all(
            t.effect == "PreferNoSchedule" or any(x.tolerates(t) for x in pod.spec.tolerations)
            for t in place.taints
        )
    return True
