"""Limits the planning work of each namespace, counted in steps so that plans are reproducible.

A plan is a pure function, so its work is estimated from what is asked: classes of pending pods, the
rows that each is compared with, its rules about other pods. If all classes together exceed what a
plan may cost, the namespaces that ask for most give way, each with its most expensive classes
first; what every other namespace gets does not depend on them (docs/scale-up.md). No namespace gets
more than a part of a plan while others use the cluster, and a smaller part while pods of others are
arriving.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from math import prod

from reconciler.model.cluster import Pod, PodAffinityTerm, PodSpec
from reconciler.model.frozen import Labels
from reconciler.model.ids import PodKey
from reconciler.model.selectors import NAME, LabelSelector, NodeSelectorTerm, Requirement
from reconciler.planner.demand import Demand, UnschedulablePods
from reconciler.planner.placement.kinds import label_of
from reconciler.planner.placement.label_keys import selector_keys, terms_of
from reconciler.planner.placement.matching import labels_insisted_on
from reconciler.planner.pod_groups import PodGroup

STEPS_MAX = 400_000_000
"""Steps of one plan, about 5 ns each on a 2.x GHz core.

The largest case of docs/benchmarks.md, 150,000 pending pods of 1,500 kinds on 5,000 nodes, needs
half of them.
"""
BESIDE_OTHERS = 4
"""The divisor of a plan's steps for one namespace while others use the cluster: a pod of theirs
that comes during the plan is planned for half a second later, not two."""
ACTIVE_SECONDS = 600
"""A namespace uses the cluster if a pod is pending there or one was created within this time,
except DaemonSets' pods: these come with nodes, whoever the nodes are for."""
BESIDE_NEW_PODS = 16
"""The divisor for one namespace while pods of others arrive."""
NEW_SECONDS = 60
"""Pods of others arrive if one was created within this time.

With a few seconds the share, and what is deferred, would change from plan to plan: nodes of
deferred pods look empty.
"""
DEMANDING = 64
"""A namespace that asks for more than this part of a plan is called demanding: while others use
the cluster its changes are batched for longer before a plan, as a pod of theirs that comes
then waits for the end of a long one."""
PER_KIND = 20_000
"""Steps for each kind of pods, whatever it is compared with."""
PER_RULED_KIND = 80_000
"""Further steps for a kind with required rules about other pods, tried place by place."""
PER_ROW = 2
PER_ROW_AND_RULE = 4
PER_LINE = 400
"""Steps for each expression of a node selector."""
PER_LINE_AND_NODES_ALIKE = 40
PER_VALUE_AND_NODES_ALIKE = 4
"""Steps for each expression of a node selector and each of its values, for all nodes that it
cannot tell apart: an expression about host names is compared with every node."""
PER_VOLUME = 600
PER_LINE_AND_VOLUME = 40
PER_VALUE_AND_VOLUME = 4
"""Steps for each volume made by hand that may serve a claim, and each expression and value of
the claim's selector."""
KEY_SETS_MAX = 16
"""For how many sets of label keys nodes are counted; for others the product of their values is
used."""
PER_ROW_AND_SELECTION = 60
"""Steps for each node and each distinct selection of nodes."""
PER_PAIR = 8_000
"""Steps for each rule and kind of pods that it may mean."""
PER_PAIR_AND_ROW = 10
PER_NAMESPACE = 400
"""Namespaces that a rule's namespaceSelector may match: the matches are kept as a set."""

Shown = frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What classes of pods are compared with."""

    rows: int
    """The number of nodes, and of fleets that may bring one."""
    labels: Sequence[Labels]
    """The label sets that these have, or may have."""
    label_keys: frozenset[str]
    """All label keys of these; no other key tells nodes apart."""
    namespaces: int
    claims: Callable[[Pod], Iterable[tuple[LabelSelector | None, int]]] = lambda _: ()
    """The selectors of a pod's claims, each with how many volumes it is compared with."""


def within_work(
    demand: Demand,
    bound: Sequence[PodGroup],
    world: World,
    at: datetime,
    steps_max: int = STEPS_MAX,
) -> Demand:
    """Return the demand that one plan may look at; the rest is deferred.

    Args:
        demand: The whole demand.
        bound: The running pods.
        world: What classes are compared with.
        at: The time of the plan.
        steps_max: The steps of the whole plan.
    """
    estimate = _Estimate(demand.unschedulable, bound, world)
    steps = [estimate.steps(unschedulable_pods) for unschedulable_pods in demand.unschedulable]
    asked: Counter[str] = Counter()
    for unschedulable_pods, own in zip(demand.unschedulable, steps, strict=True):
        asked[unschedulable_pods.group.traits.namespace] += own
    shares = _shares(asked, demand.unschedulable, bound, at, steps_max)
    much, beside_others = steps_max // DEMANDING, steps_max // BESIDE_OTHERS
    demanding = {n for n, own in asked.items() if own > much and shares[n] <= beside_others}
    demand = replace(demand, demanding=frozenset(demanding))
    if all(own <= shares[namespace] for namespace, own in asked.items()):
        return demand
    ordered = sorted(
        zip(demand.unschedulable, steps, strict=True),
        key=lambda each: (each[1], _first(each[0].group)),
    )
    spent: Counter[str] = Counter()
    kept: dict[int, UnschedulablePods] = {}
    deferred: list[tuple[PodKey, str]] = []
    for unschedulable_pods, own in ordered:
        namespace = unschedulable_pods.group.traits.namespace
        first, rest = _split_by_work(
            unschedulable_pods.group, own, shares[namespace] - spent[namespace]
        )
        spent[namespace] += own
        if first:
            group = replace(unschedulable_pods.group, pods=first)
            kept[id(unschedulable_pods)] = replace(unschedulable_pods, group=group)
        deferred += [(pod.key, _detail(namespace)) for pod in rest]
    return replace(
        demand,
        unschedulable=tuple(kept[id(each)] for each in demand.unschedulable if id(each) in kept),
        deferred=tuple(sorted(deferred)),
    )


def _split_by_work(group: PodGroup, own: int, left: int) -> tuple[list[Pod], list[Pod]]:
    """Return the pods of a group that may be planned, and the others.

    Pods with volumes are a class each, and a thousand of them may be one group: as many as fit are
    planned, the first by name.

    Args:
        group: The pods.
        own: Their cost in steps.
        left: The steps that their namespace has left.
    """
    if own <= left:
        return group.pods, []
    if not group.traits.volumes or left <= 0:
        return [], group.pods
    ordered = sorted(group.pods, key=lambda pod: pod.key)
    most = len(ordered) * left // own
    return ordered[:most], ordered[most:]


def _shares(
    asked: Mapping[str, int],
    unschedulable: Sequence[UnschedulablePods],
    bound: Sequence[PodGroup],
    at: datetime,
    steps_max: int,
) -> Mapping[str, int]:
    """Return the most steps for each namespace with pending pods."""
    fair = _fair_share(list(asked.values()), steps_max)
    if max(asked.values(), default=0) <= min(fair, steps_max // DEMANDING):
        return dict.fromkeys(asked, fair)
    running = [group for group in bound if not group.traits.daemon]
    pending = [each.group for each in unschedulable]
    new_since = at - timedelta(seconds=NEW_SECONDS)
    active = set(asked) | _with_pods_since(running, at - timedelta(seconds=ACTIVE_SECONDS))
    with_new = _with_pods_since(pending, new_since)
    with_new |= _with_pods_since(running, new_since, unknown=False)
    shares = {}
    for namespace in asked:
        part = 1
        if active - {namespace}:
            part = BESIDE_OTHERS
        if with_new - {namespace}:
            part = BESIDE_NEW_PODS
        shares[namespace] = min(fair, steps_max // part)
    return shares


def _with_pods_since(
    groups: Iterable[PodGroup], since: datetime, *, unknown: bool = True
) -> set[str]:
    """Return namespaces with a pod created since then, or at an unknown time if `unknown`."""
    return {
        group.traits.namespace
        for group in groups
        if any(unknown if pod.created_at is None else pod.created_at >= since for pod in group.pods)
    }


def _detail(namespace: str) -> str:
    return (
        f"is among the pods of namespace {namespace} that take most work to plan; its pending pods "
        "together ask for more than its share of a plan's work"
    )


def _first(group: PodGroup) -> tuple[str, str]:
    """Return the sort key of groups of equal steps, independent of the snapshot's order."""
    first = min(group.pods, key=lambda pod: pod.key)
    return first.key.name, first.key.uid


def _fair_share(asked: Sequence[int], steps_max: int) -> int:
    """Return the highest share per namespace with which all together stay within `steps_max`."""
    left = steps_max
    ordered = sorted(asked)
    for number, own in enumerate(ordered):
        share = left // (len(ordered) - number)
        if own > share:
            return share
        left -= own
    return max(ordered, default=steps_max)


class _Estimate:
    """The cost of classes of pods in steps, given all others."""

    def __init__(
        self, unschedulable: Sequence[UnschedulablePods], bound: Iterable[PodGroup], world: World
    ) -> None:
        self._world = world
        self._nodes = _NodesAlike(world)
        running = list(bound)
        groups = [*running, *(unschedulable_pods.group for unschedulable_pods in unschedulable)]
        self._read = selector_keys({id(g.traits.spec): g.traits.spec for g in groups}.values())
        self._kinds: dict[int, int] = {}
        """How many classes a group has, which differ by labels."""
        self._having: Counter[tuple[str, str, str | None]] = Counter()
        """Classes by namespace, label key and value, and by namespace and key alone."""
        self._in_namespace: Counter[str] = Counter()
        for group in running:
            self._note(group, group.pods[:1])
        for unschedulable_pods in unschedulable:
            self._note(unschedulable_pods.group, unschedulable_pods.group.pods)
        self._charged: set[tuple[object, ...]] = set()

    def _note(self, group: PodGroup, pods: Sequence[Pod]) -> None:
        namespace = group.traits.namespace
        distinct = {id(pod.labels): pod.labels for pod in pods}.values() if self._read else ()
        shown = {self._shown(labels) for labels in distinct}
        count = len(pods) if group.traits.volumes else max(1, len(shown))
        self._kinds[id(group)] = count
        self._in_namespace[namespace] += count
        for labels in shown:
            for key, value in labels:
                self._having[namespace, key, value] += 1
                self._having[namespace, key, None] += 1

    def _shown(self, labels: Labels) -> Shown:
        return frozenset([item for item in labels.items() if item[0] in self._read])

    def steps(self, unschedulable_pods: UnschedulablePods) -> int:
        """Return the steps to plan the pods of one group."""
        spec = unschedulable_pods.group.traits.spec
        rules = len(spec.pod_affinity) + len(spec.pod_anti_affinity) + len(spec.topology_spread)
        each = PER_KIND + PER_LINE * _node_lines(spec) + PER_ROW * self._world.rows
        each += PER_ROW_AND_RULE * self._world.rows * (rules + len(spec.pod_preferences))
        if rules:
            each += PER_RULED_KIND
        once = self._pairs(unschedulable_pods.group.traits.namespace, spec)
        selection = (spec.node_selector, spec.node_affinity, spec.tolerations)
        if selection not in self._charged:
            self._charged.add(selection)
            once += PER_ROW_AND_SELECTION * self._world.rows
            asked = 2 if spec.topology_spread else 1  # a spread asks which nodes it counts
            once += asked * self._compared(_required_lines(spec))
        if spec.node_preferences:
            each += self._compared(_preferred_lines(spec))
        if unschedulable_pods.group.traits.volumes:
            once += sum(map(self._volumes, unschedulable_pods.group.pods))
        return each * self._kinds[id(unschedulable_pods.group)] + once

    def _volumes(self, pod: Pod) -> int:
        """Return the steps to look for volumes for the claims of a pod."""
        return sum(
            volumes * (PER_VOLUME + _per_volume(selector))
            for selector, volumes in self._world.claims(pod)
        )

    def _compared(self, lines: Sequence[Requirement]) -> int:
        """Return the steps to compare nodes with the expressions of a selector."""
        values = sum(len(line.values) for line in lines)
        once = PER_LINE_AND_NODES_ALIKE * len(lines) + PER_VALUE_AND_NODES_ALIKE * values
        sorts = self._nodes.sorts_of(frozenset([line.key for line in lines]))
        named = sum(len(line.values) for line in lines if line.key == NAME)
        return once * min(len(self._world.labels), sorts + named)

    def _pairs(self, namespace: str, spec: PodSpec) -> int:
        """Return the steps for the rules of a spec, each counted once for all who have it."""
        per_pair = PER_PAIR + PER_PAIR_AND_ROW * self._world.rows
        steps = 0
        for term in terms_of(spec):
            rule = (namespace, term)
            if rule not in self._charged:
                self._charged.add(rule)
                steps += per_pair * self._meant(namespace, term)
                if term.namespace_selector is not None:
                    steps += PER_NAMESPACE * self._world.namespaces
        return steps

    def _meant(self, namespace: str, term: PodAffinityTerm) -> int:
        """Return how many classes of pods a term may match."""
        if term.selector is None:
            return 0
        spaces: Iterable[str] = term.namespaces or (namespace,)
        if term.namespace_selector is not None:
            spaces = self._in_namespace
        insisted = labels_insisted_on(term.selector)
        if insisted is None:
            return sum(self._in_namespace[space] for space in spaces)
        key, values = insisted
        return sum(self._having[space, key, value] for space in spaces for value in values)


class _NodesAlike:
    """How many sorts of nodes selectors tell apart by the label keys that they read, at most."""

    def __init__(self, world: World) -> None:
        self._labels = world.labels
        self._present = world.label_keys
        self._known: dict[frozenset[str], int] = {}
        """By label keys: single ones, and no more than `KEY_SETS_MAX` sets of several."""
        self._sets = 0

    def sorts_of(self, keys: frozenset[str]) -> int:
        """Return how many sorts of nodes these keys tell apart."""
        by_key = {key: self._counted(frozenset({key})) for key in keys & self._present}
        several = frozenset([key for key, count in by_key.items() if count > 1])
        most = min(len(self._labels), prod(by_key[key] for key in several))
        if len(several) < 2:
            return most
        if several not in self._known:
            if self._sets == KEY_SETS_MAX:
                return most
            self._sets += 1
        return self._counted(several)

    def _counted(self, keys: frozenset[str]) -> int:
        if keys not in self._known:
            shown = {tuple([label_of(labels, key) for key in keys]) for labels in self._labels}
            self._known[keys] = max(1, len(shown))
        return self._known[keys]


def _per_volume(selector: LabelSelector | None) -> int:
    if selector is None:
        return 0
    lines = selector.match_expressions
    values = sum(len(line.values) for line in lines)
    return (
        PER_LINE_AND_VOLUME * (len(lines) + len(selector.match_labels))
        + PER_VALUE_AND_VOLUME * values
    )


def _required_lines(spec: PodSpec) -> list[Requirement]:
    """Return the required expressions about nodes."""
    selector = [
        Requirement(key=key, operator="In", values=(value,))
        for key, value in spec.node_selector.items()
    ]
    affinity = spec.node_affinity.terms if spec.node_affinity is not None else ()
    return [*selector, *_lines(affinity)]


def _preferred_lines(spec: PodSpec) -> list[Requirement]:
    """Return the preferred expressions about nodes."""
    return _lines(preference.term for preference in spec.node_preferences)


def _lines(terms: Iterable[NodeSelectorTerm]) -> list[Requirement]:
    return [line for term in terms for line in (*term.expressions, *term.fields)]


def _node_lines(spec: PodSpec) -> int:
    """Return the expressions that are compared with nodes."""
    affinity = spec.node_affinity.terms if spec.node_affinity is not None else ()
    terms = [*affinity, *(preference.term for preference in spec.node_preferences)]
    lines = sum(len(term.expressions) + len(term.fields) for term in terms)
    return lines + len(spec.node_selector) + len(spec.tolerations)
