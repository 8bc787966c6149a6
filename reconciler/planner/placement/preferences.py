"""Soft terms: which of the nodes that take a pod kube-scheduler would prefer.

Preferred node affinity, PreferNoSchedule taints, preferred inter-pod (anti-)affinity and
ScheduleAnyway spread order the existing nodes. They refuse nothing, and cost nothing for a class
without any. The preferences of running pods for a new one are left out.

Source: kube-scheduler plugins nodeaffinity, tainttoleration, interpodaffinity and
podtopologyspread, scoring.go, with the default weights.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from reconciler.model.cluster import Node, Preference, Taint
from reconciler.planner.placement.arrays import BoolArray, FloatArray, IntArray
from reconciler.planner.placement.classes import PodClass
from reconciler.planner.placement.fill import fill, take_in_order
from reconciler.planner.placement.kinds import with_zone_aliases
from reconciler.planner.placement.simulation import Simulation

_TAINTS, _NODE_AFFINITY, _POD_AFFINITY, _SPREAD = 3.0, 2.0, 2.0, 2.0
"""Weights of the default profile."""
_FULL = 100.0
_VISITS_MAX = 400_000
"""How many rows are scored in all rounds of a cycle, about a tenth of a second.

After that rounds get larger.
"""
_ROUND = 1_000
"""The fixed cost of a round, in rows."""


@dataclass(slots=True, eq=False)
class _Soft:
    """One soft term about other pods: how many pods per domain, and what they are worth."""

    domain: IntArray
    """Per node; -1 without the label."""
    counts: FloatArray
    """Per domain."""
    weight: float
    itself: bool
    """Whether pods of the class count for it themselves."""
    max_skew: int = 0
    """0 for affinity; the maxSkew of a spread constraint."""


class Preferences:
    """The soft terms of classes over the existing nodes, which are the first rows.

    Args:
        sim: The what-if cluster.
        nodes: The existing nodes.
        taints: Whether their soft taints count; False for a caller who knows which will be there.
    """

    def __init__(self, sim: Simulation, nodes: Sequence[Node], *, taints: bool = True) -> None:
        self._sim = sim
        self._nodes = nodes
        soft = [
            tuple(t for t in node.taints if taints and t.effect == "PreferNoSchedule")
            for node in nodes
        ]
        self._taints: tuple[tuple[Taint, ...], ...] = tuple(sorted(set(soft)))
        known = {taints: number for number, taints in enumerate(self._taints)}
        self._taints_of = np.array([known[taints] for taints in soft], dtype=np.int64)
        self._domains: dict[str, tuple[IntArray, int]] = {}
        self._fixed_of: dict[int, FloatArray] = {}
        self._visits = _VISITS_MAX

    def matter(self, classes: Sequence[PodClass]) -> bool:
        """Return whether any of the classes prefers one node to another."""
        return any(self._has(pod_class) for pod_class in classes)

    def scores(self, pod_class: PodClass) -> FloatArray:
        """Return what the class's soft terms are worth on each node, with pods as placed now."""
        if not self._has(pod_class):
            return np.zeros(len(self._nodes))
        return _total(self._fixed(pod_class), self._terms(pod_class))

    def fill(
        self, pod_class: PodClass, count: int, among: BoolArray, order: IntArray
    ) -> list[tuple[int, int]]:
        """Do what `fill.fill` does, with nodes that the class prefers first, then by `order`."""
        if not self._has(pod_class):
            return fill(self._sim, pod_class, count, among, order)
        fixed, terms = self._fixed(pod_class), self._terms(pod_class)
        if not any(term.itself for term in terms):
            return fill(self._sim, pod_class, count, among, self._ordered(order, fixed, terms))
        if self._sim.links(pod_class).plain and not pod_class.volumes.shared:
            room = np.where(among, self._sim.room(pod_class), 0)
            return self._place_all(pod_class, count, room, order)
        taken: list[tuple[int, int]] = []
        for amount in self._portions(count):
            ordered = self._ordered(order, fixed, terms)
            part = fill(self._sim, pod_class, amount, among, ordered)
            taken += part
            if sum(n for _, n in part) < amount:
                break
            _count(terms, part, len(self._nodes))
        return taken

    def _place_all(
        self, pod_class: PodClass, count: int, room: IntArray, order: IntArray
    ) -> list[tuple[int, int]]:
        """Place pods that only their own soft terms order, with one reservation at the end."""
        fixed, terms = self._fixed(pod_class), self._terms(pod_class)
        amounts = np.zeros_like(room)
        for amount in self._portions(min(count, int(np.minimum(room, count).sum()))):
            ordered = self._ordered(order, fixed, terms)
            part = _dealt_once(room - amounts, ordered, amount)
            for row, more in part:
                amounts[row] += more
            _count(terms, part, len(self._nodes))
        rows = order[amounts[order] > 0]
        if len(rows):
            self._sim.place(pod_class, rows, amounts[rows])
        return list(zip(rows.tolist(), amounts[rows].tolist(), strict=True))

    def _has(self, pod_class: PodClass) -> bool:
        spec = pod_class.spec
        return bool(
            self._nodes
            and (
                len(self._taints) > 1
                or spec.node_preferences
                or pod_class.preferences
                or pod_class.soft_spread
            )
        )

    def _portions(self, count: int) -> list[int]:
        """Return the portions in which pods are placed: single pods, or larger to limit work."""
        if count <= 0:
            return []
        visits = len(self._nodes) + _ROUND
        rounds = max(1, min(count, self._visits // visits))
        self._visits -= rounds * visits
        return [count // rounds + (number < count % rounds) for number in range(rounds)]

    def _ordered(self, order: IntArray, fixed: FloatArray, terms: Sequence[_Soft]) -> IntArray:
        """Return `order` with better scores first; rows that are not nodes come last if equal."""
        score = _total(fixed, terms)
        padded = np.zeros(self._sim.rows)
        padded[: len(score)] = score
        return order[np.argsort(-padded[order], kind="stable")]

    def _fixed(self, pod_class: PodClass) -> FloatArray:
        """Return what preferred node affinity and soft taints are worth on each node."""
        known = self._fixed_of.get(pod_class.number)
        if known is None:
            known = self._fixed_of[pod_class.number] = self._of_nodes(pod_class)
        return known

    def _of_nodes(self, pod_class: PodClass) -> FloatArray:
        tolerations = pod_class.spec.tolerations
        intolerable = np.array(
            [
                sum(not any(t.tolerates(taint) for t in tolerations) for taint in taints)
                for taints in self._taints
            ],
            dtype=np.float64,
        )
        score = _TAINTS * (_FULL - _of_largest(intolerable[self._taints_of]))
        if pod_class.spec.node_preferences:
            score += _NODE_AFFINITY * _of_largest(self._preferred(pod_class))
        return score

    def _preferred(self, pod_class: PodClass) -> FloatArray:
        """Return per node the sum of the weights of the preferred terms that hold."""
        preferences = pod_class.spec.node_preferences
        kinds = self._sim.kinds[: len(self._nodes)]
        if any(p.term.fields for p in preferences):
            found = [
                sum(p.weight for p in preferences if p.term.matches(node.labels, node.name))
                for node in self._nodes
            ]
            return np.array(found, dtype=np.float64)
        table = self._sim.kind_table
        alike = np.array(table.alike(tuple(sorted(_keys_of(preferences)))), dtype=np.int64)
        of_kind = np.zeros(len(table.kinds))
        for number in np.unique(alike[kinds]).tolist():
            labels = table.kinds[number].variants[0]
            of_kind[number] = sum(p.weight for p in preferences if p.term.matches(labels, ""))
        return of_kind[alike[kinds]]

    def _terms(self, pod_class: PodClass) -> list[_Soft]:
        """Return the soft terms about other pods, with current counts."""
        found: list[_Soft] = []
        for weight, term in pod_class.preferences:
            members = self._sim.matching(term.namespaces, term.selector)
            domain, counts = self._counted(term.topology_key, members)
            itself = bool((members == pod_class.number).any())
            found.append(_Soft(domain=domain, counts=counts, weight=weight, itself=itself))
        for constraint in pod_class.soft_spread:
            members = self._sim.staying(frozenset({pod_class.namespace}), constraint.selector)
            domain, counts = self._counted(constraint.topology_key, members)
            found.append(
                _Soft(
                    domain=domain,
                    counts=counts,
                    weight=float(np.log(len(counts) + 2)),
                    itself=bool((members == pod_class.number).any()),
                    max_skew=constraint.max_skew,
                )
            )
        return found

    def _counted(self, key: str, members: IntArray) -> tuple[IntArray, FloatArray]:
        """Return each node's domain, and the number of pods of these classes in each domain."""
        domain, size = self._domain(key)
        counts = np.zeros(size)
        rows, amounts = self._sim.located(members)
        here = rows < len(domain)
        at, much = domain[rows[here]], amounts[here]
        np.add.at(counts, at[at >= 0], much[at >= 0])
        return domain, counts

    def _domain(self, key: str) -> tuple[IntArray, int]:
        if key not in self._domains:
            values = [with_zone_aliases(node.labels).get(key, "") for node in self._nodes]
            number = {value: i for i, value in enumerate(sorted(set(values) - {""}))}
            found = np.array([number.get(value, -1) for value in values], dtype=np.int64)
            self._domains[key] = found, len(number)
        return self._domains[key]


def _keys_of(preferences: Iterable[Preference]) -> set[str]:
    """Return the node label keys that preferred terms read."""
    return {line.key for preference in preferences for line in preference.term.expressions}


def _dealt_once(room: IntArray, order: IntArray, count: int) -> list[tuple[int, int]]:
    """Return one pod for each of the best rows; more only if there are too few rows."""
    rows, amounts = take_in_order(np.minimum(room, 1), order, count)
    if int(amounts.sum()) < count:
        rows, amounts = take_in_order(room, order, count)
    return list(zip(rows.tolist(), amounts.tolist(), strict=True))


def _total(fixed: FloatArray, terms: Sequence[_Soft]) -> FloatArray:
    """Return the score per node: fixed preferences, and terms about other pods."""
    score = fixed
    near = [term for term in terms if not term.max_skew]
    if near:
        values = sum((t.weight * _pods_in_domain(t) for t in near), np.zeros(len(fixed)))
        least, most = values.min(), values.max()
        span = most - least
        score = score + _POD_AFFINITY * np.floor(_FULL * (values - least) / (span or 1.0))
    spread = [term for term in terms if term.max_skew]
    if spread:
        score = score + _SPREAD * _evenness(spread)
    return score


def _pods_in_domain(term: _Soft) -> FloatArray:
    """Return per node the pods in its domain; 0 without a domain."""
    if not len(term.counts):
        return np.zeros(len(term.domain))
    return np.where(term.domain >= 0, term.counts[term.domain], 0.0)


def _evenness(terms: Sequence[_Soft]) -> FloatArray:
    """Return 0 to 100, higher in emptier domains; 0 on nodes that lack one of the keys."""
    labelled = np.all([term.domain >= 0 for term in terms], axis=0)
    crowded = np.zeros(len(labelled))
    for term in terms:
        crowded += np.round(_pods_in_domain(term) * term.weight + (term.max_skew - 1))
    most = crowded[labelled].max(initial=0.0)
    least = crowded[labelled].min(initial=most)
    even = (
        np.floor(_FULL * (most + least - crowded) / most) if most else np.full_like(crowded, _FULL)
    )
    return np.where(labelled, even, 0.0)


def _of_largest(values: FloatArray) -> FloatArray:
    """Return whole percents of the largest value; all zero stays all zero."""
    largest = values.max(initial=0.0)
    return np.floor(_FULL * values / largest) if largest else values


def _count(terms: Sequence[_Soft], taken: Sequence[tuple[int, int]], nodes: int) -> None:
    """Count the pods that were just placed in the terms."""
    for term in terms:
        for row, amount in taken:
            if term.itself and row < nodes and term.domain[row] >= 0:
                term.counts[term.domain[row]] += amount
