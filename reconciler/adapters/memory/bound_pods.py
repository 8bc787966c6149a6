"""Which bound pods the rules of others match, counted on each node as pods come and go.

A rule is counted from its first use on, and indexed by a label that it requires. So a pod costs as
much as the rules that match it, not as all rules, and a rule as much as the pods that it matches.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from reconciler.model.cluster import Pod, PodAffinityTerm, PodSpec, TopologySpreadConstraint
from reconciler.model.frozen import FrozenMap, Labels
from reconciler.model.ids import NodeName
from reconciler.model.selectors import LabelSelector, Operator, Requirement

PodName = tuple[str, str]
OnNodes = Mapping[NodeName, int]
"""How many pods are on each node; nodes without any are left out."""
_NAMESPACE_NAME = "kubernetes.io/metadata.name"
"""The label that the API server gives each namespace, the only one that this world has."""
_RULES_MAX = 2048
"""Rules that are counted at a time; beyond this all counts are dropped and computed again on
use."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class PodMatcher:
    """The pods that a term matches, with its holder's namespace and labels filled in."""

    selector: LabelSelector
    namespaces: frozenset[str]
    namespace_selector: LabelSelector | None = None

    def matches(self, namespace: str, labels: Labels) -> bool:
        """Return whether a pod of that namespace with these labels matches."""
        if namespace not in self.namespaces and not (
            self.namespace_selector is not None
            and self.namespace_selector.matches({_NAMESPACE_NAME: namespace})
        ):
            return False
        return self.selector.matches(labels)

    @property
    def label(self) -> tuple[str, str] | None:
        """Return a label that all of them have; the last one, which distinguishes revisions."""
        return next(reversed([*self.selector.match_labels.items()]), None)


def labels_read(spec: PodSpec) -> tuple[str, ...]:
    """Return the labels of a pod that its rules about others read."""
    terms = (*spec.pod_affinity, *spec.pod_anti_affinity)
    selectors = [term.selector for term in terms] + [r.selector for r in spec.topology_spread]
    keys: set[str] = set().union(
        *[selector.keys() for selector in selectors if selector is not None]
    )
    keys.update(*[rule.match_label_keys for rule in spec.topology_spread])
    keys.update(*[(*term.match_label_keys, *term.mismatch_label_keys) for term in terms])
    return tuple(sorted(keys))


def matcher_of(term: PodAffinityTerm, holder: Pod) -> PodMatcher | None:
    """Return what a pod's affinity or anti-affinity term matches; None: no pod."""
    if term.selector is None:
        return None
    lines: tuple[tuple[Operator, tuple[str, ...]], ...] = (
        ("In", term.match_label_keys),
        ("NotIn", term.mismatch_label_keys),
    )
    merged = [
        Requirement(key=key, operator=operator, values=(holder.labels[key],))
        for operator, keys in lines
        for key in keys
        if key in holder.labels
    ]
    own = not term.namespaces and term.namespace_selector is None
    return PodMatcher(
        selector=_with_lines(term.selector, merged),
        namespaces=frozenset({holder.key.namespace}) if own else term.namespaces,
        namespace_selector=term.namespace_selector,
    )


def spread_matcher_of(rule: TopologySpreadConstraint, holder: Pod) -> PodMatcher | None:
    """Return what a pod's spread constraint counts; None: no pod."""
    if rule.selector is None:
        return None
    same = {key: holder.labels[key] for key in rule.match_label_keys if key in holder.labels}
    lines = [Requirement(key=k, operator="In", values=(v,)) for k, v in same.items()]
    selector = _with_lines(rule.selector, lines)
    if selector == LabelSelector():  # kube-scheduler counts none of the pods that this matches
        return None
    return PodMatcher(selector=selector, namespaces=frozenset({holder.key.namespace}))


def _with_lines(selector: LabelSelector, lines: list[Requirement]) -> LabelSelector:
    """Return a selector with further requirements; one of a single value becomes a label."""
    if not lines:
        return selector
    labels, rest = dict(selector.match_labels), list(selector.match_expressions)
    for line in lines:
        if line.operator == "In" and line.key not in labels:
            labels[line.key] = line.values[0]
        else:
            rest.append(line)
    return LabelSelector(match_labels=FrozenMap(labels), match_expressions=tuple(rest))


class _ByLabel(Generic[T]):
    """Objects by a label that they have or require; None for those that require none."""

    def __init__(self) -> None:
        self._having: dict[tuple[str, str] | None, dict[T, None]] = {}

    def add(self, label: tuple[str, str] | None, thing: T) -> None:
        self._having.setdefault(label, {})[thing] = None

    def remove(self, label: tuple[str, str] | None, thing: T) -> None:
        having = self._having[label]
        del having[thing]
        if not having:
            del self._having[label]

    def with_label(self, label: tuple[str, str] | None) -> Iterator[T]:
        return iter(self._having.get(label, ()))

    def that_may_match(self, labels: Labels) -> Iterator[T]:
        yield from self._having.get(None, ())
        for label in labels.items():
            yield from self._having.get(label, ())


@dataclass(slots=True, eq=False)
class _Alike:
    """Bound pods of one namespace with the same labels, that are all being deleted or all not."""

    namespace: str
    labels: Labels
    deleting: bool
    on: dict[NodeName, int] = field(default_factory=dict)
    tallies: "list[_Tally]" = field(default_factory=list)
    """The rules that match them."""


@dataclass(slots=True, eq=False)
class _Tally:
    """The pods that one rule matches."""

    every: tuple[PodMatcher, ...]
    """Pods that all of these match."""
    deleting: bool
    """Whether pods that are being deleted count."""
    on: dict[NodeName, int] = field(default_factory=dict)

    def counts(self, alike: _Alike) -> bool:
        if alike.deleting and not self.deleting:
            return False
        return all(pod_matcher.matches(alike.namespace, alike.labels) for pod_matcher in self.every)


@dataclass(slots=True, eq=False)
class _Held:
    """An anti-affinity term of bound pods, and where these are."""

    matcher: PodMatcher
    topology_key: str
    on: dict[NodeName, int] = field(default_factory=dict)


class BoundPods:
    """The bound pods that have not finished, as rules between pods see them.

    Args:
        pods: All pods, as they are at any time.
    """

    def __init__(self, pods: Mapping[PodName, Pod]) -> None:
        self._pods = pods
        self._counting = False
        """Whether any rule was used yet: clusters without rules have no cost."""
        self._alike: dict[tuple[str, Labels, bool], _Alike] = {}
        self._alike_by_label: _ByLabel[_Alike] = _ByLabel()
        self._tallies: dict[tuple[tuple[PodMatcher, ...], bool], _Tally] = {}
        self._tallies_by_label: _ByLabel[_Tally] = _ByLabel()
        self._held: dict[tuple[PodMatcher, str], _Held] = {}
        self._held_by_label: _ByLabel[_Held] = _ByLabel()

    def change(self, pod: Pod, sign: int) -> None:
        """Record that a pod starts (1) or stops (-1) being on its node, as it is."""
        if self._counting:
            self._count(pod, sign)
        for term in pod.spec.pod_anti_affinity:
            self._hold(term, pod, sign)

    def counted(self, every: tuple[PodMatcher, ...], *, deleting: bool = True) -> OnNodes:
        """Return where the pods are that all of these match.

        Args:
            every: What they match.
            deleting: Whether pods that are being deleted count.
        """
        if not self._counting:
            self._counting = True
            for pod in self._pods.values():
                if pod.node_name is not None and not pod.finished:
                    self._count(pod, 1)
        known = self._tallies.get((every, deleting))
        return (known or self._begin(every, deleting=deleting)).on

    def against(self, pod: Pod) -> list[tuple[str, OnNodes]]:
        """Return anti-affinity of bound pods that matches a pod: topology keys, and their nodes."""
        if not self._held:
            return []
        return [
            (held.topology_key, held.on)
            for held in self._held_by_label.that_may_match(pod.labels)
            if held.matcher.matches(pod.key.namespace, pod.labels)
        ]

    def _begin(self, every: tuple[PodMatcher, ...], *, deleting: bool) -> _Tally:
        if len(self._tallies) >= _RULES_MAX:
            self._tallies.clear()
            self._tallies_by_label = _ByLabel()
            for alike in self._alike.values():
                alike.tallies.clear()
        tally = self._tallies[every, deleting] = _Tally(every, deleting)
        label = every[0].label
        self._tallies_by_label.add(label, tally)
        some = self._alike.values() if label is None else self._alike_by_label.with_label(label)
        for alike in some:
            if tally.counts(alike):
                alike.tallies.append(tally)
                for node, number in alike.on.items():
                    tally.on[node] = tally.on.get(node, 0) + number
        return tally

    def _count(self, pod: Pod, sign: int) -> None:
        assert pod.node_name is not None
        key = (pod.key.namespace, pod.labels, pod.deleting)
        alike = self._alike.get(key)
        if alike is None:
            alike = self._alike[key] = _Alike(*key)
            for label in pod.labels.items():
                self._alike_by_label.add(label, alike)
            tallies = self._tallies_by_label.that_may_match(pod.labels)
            alike.tallies = [tally for tally in tallies if tally.counts(alike)]
        for tally in alike.tallies:
            _add(tally.on, pod.node_name, sign)
        _add(alike.on, pod.node_name, sign)
        if not alike.on:
            del self._alike[key]
            for label in pod.labels.items():
                self._alike_by_label.remove(label, alike)

    def _hold(self, term: PodAffinityTerm, pod: Pod, sign: int) -> None:
        assert pod.node_name is not None
        matcher = matcher_of(term, pod)
        if matcher is None:
            return
        key = (matcher, term.topology_key)
        held = self._held.get(key)
        if held is None:
            held = self._held[key] = _Held(*key)
            self._held_by_label.add(matcher.label, held)
        _add(held.on, pod.node_name, sign)
        if not held.on:
            del self._held[key]
            self._held_by_label.remove(held.matcher.label, held)


def _add(on: dict[NodeName, int], node: NodeName, sign: int) -> None:
    number = on.get(node, 0) + sign
    if number:
        on[node] = number
    else:
        del on[node]
