"""Which classes a selector matches, and which anti-affinity terms match a class.

Thousands of pods may each have a selector that means nearly all of them. A few candidates are
compared with a selector one by one; many are looked up together by their labels, or by the
selectors' expressions.
"""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Generic, TypeVar

import numpy as np

from reconciler.model.cluster import PodAffinityTerm
from reconciler.model.frozen import Labels
from reconciler.model.selectors import LabelSelector, Requirement
from reconciler.planner.placement.arrays import BoolArray, IntArray
from reconciler.planner.placement.classes import PodClass

FEW = 16
"""Up to this many are compared and counted one by one, which is faster than looking them up."""

Description = tuple[frozenset[str], LabelSelector | None]
"""Pods of these namespaces that the selector matches; None matches none."""
InNamespace = tuple[str, str, str | None]
"""A namespace, a label key and its value; None for any value."""
Label = tuple[str, str | None]
K = TypeVar("K")
_NO_NUMBERS: IntArray = np.zeros(0, dtype=np.int64)
_EXCLUDING = frozenset({"NotIn", "DoesNotExist"})


class _Lists(Generic[K]):
    """Lists of numbers by key, readable as lists or as arrays."""

    def __init__(self) -> None:
        self.lists: dict[K, list[int]] = {}
        self._arrays: dict[K, IntArray] = {}

    def add(self, key: K, number: int) -> None:
        """Append a number; not allowed once they were read."""
        self.lists.setdefault(key, []).append(number)

    def array(self, key: K) -> IntArray:
        """Return the numbers of a key."""
        known = self._arrays.get(key)
        if known is None:
            found = self.lists.get(key)
            known = _NO_NUMBERS if found is None else np.array(found, dtype=np.int64)
            self._arrays[key] = known
        return known

    def mark(self, marks: BoolArray, keys: Iterable[K], *, to: bool) -> None:
        """Set the marks of all numbers of these keys."""
        for key in keys:
            if key in self.lists:
                marks[self.array(key)] = to


class ClassIndex:
    """Finds the classes that a selector matches."""

    def __init__(self, classes: Sequence[PodClass]) -> None:
        self._classes = tuple(classes)
        self._by_namespace = _Lists[str]()
        self._by_label = _Lists[InNamespace]()
        self._having: _Lists[Label] | None = None
        """In all namespaces; built when many classes are compared for the first time."""
        for pod_class in classes:
            namespace, number = pod_class.namespace, pod_class.number
            self._by_namespace.add(namespace, number)
            for key, value in pod_class.labels.items():
                self._by_label.add((namespace, key, value), number)
                self._by_label.add((namespace, key, None), number)

    def matching(self, description: Description) -> IntArray:
        """Return the numbers of the classes whose pods the description matches, in order."""
        namespaces, selector = description
        if selector is None:
            return _NO_NUMBERS
        there = namespaces & self._by_namespace.lists.keys()
        insisted = labels_insisted_on(selector)
        if insisted is None:
            return self._among(self._by_namespace, there, selector)
        key, values = insisted
        return self._among(
            self._by_label, [(space, key, value) for space in there for value in values], selector
        )

    def _among(self, lists: _Lists[K], keys: Iterable[K], selector: LabelSelector) -> IntArray:
        """Return the classes in the lists of these keys that the selector matches."""
        parts = [part for key in keys if (part := lists.lists.get(key))]
        if sum(map(len, parts)) <= FEW:
            classes = self._classes
            few = [n for part in parts for n in part if selector.matches(classes[n].labels)]
            return np.array(sorted(few), dtype=np.int64)
        found = np.zeros(len(self._classes), dtype=np.bool_)
        lists.mark(found, keys, to=True)
        for line in _lines(selector):
            named = np.zeros_like(found)
            self._all_having().mark(named, self._named_by(line), to=True)
            found &= ~named if line.operator in _EXCLUDING else named
        return found.nonzero()[0]

    def _named_by(self, line: Requirement) -> Iterable[Label]:
        """Return the labels of which a pod must have one, or none, for the expression to match."""
        if line.operator in {"Gt", "Lt"}:
            having = self._all_having().lists
            return [each for each in having if each[1] is not None and _holds(line, each)]
        return _labels_of(line)

    def _all_having(self) -> _Lists[Label]:
        if self._having is None:
            self._having = _Lists()
            for pod_class in self._classes:
                for key, value in pod_class.labels.items():
                    self._having.add((key, value), pod_class.number)
                    self._having.add((key, None), pod_class.number)
        return self._having


class HolderIndex:
    """Finds the classes that hold an anti-affinity term which matches a given class."""

    def __init__(self, classes: Sequence[PodClass]) -> None:
        holders: dict[PodAffinityTerm, list[int]] = {}
        for pod_class in classes:
            for term in dict.fromkeys(pod_class.anti_affinity):
                if term.selector is not None:
                    holders.setdefault(term, []).append(pod_class.number)
        self._classes = classes
        self._terms = list(holders)
        self._holders = list(holders.values())
        self._insisting = _Lists[InNamespace]()
        """Numbers of terms by a label that they require."""
        self._open = _Lists[str]()
        """By namespace, those that require none."""
        for number, term in enumerate(self._terms):
            self._add(number, term)
        self._lines: _LineIndex | None = None
        """Built when many terms are compared for the first time."""
        self._held_by: dict[str, tuple[IntArray, IntArray]] = {}
        """By topology key: pairs of a term and a class that holds it; built likewise."""

    def _add(self, number: int, term: PodAffinityTerm) -> None:
        assert term.selector is not None
        insisted = labels_insisted_on(term.selector)
        for namespace in term.namespaces:
            if insisted is None:
                self._open.add(namespace, number)
                continue
            key, values = insisted
            for value in values:
                self._insisting.add((namespace, key, value), number)

    def against(self, pod_class: PodClass) -> Sequence[tuple[object, str, IntArray]]:
        """Return the anti-affinity that keeps pods of the class away from others.

        Returns:
            For each term that matches the class, or for each topology key if many do: its identity,
            its topology key, and the numbers of the classes that hold it.
        """
        namespace, labels = pod_class.namespace, pod_class.labels
        insisting = [(namespace, *label) for label in _labels(labels)] if labels else []
        lists = self._insisting.lists
        parts = [self._open.lists.get(namespace, ()), *(lists.get(key, ()) for key in insisting)]
        if sum(map(len, parts)) <= FEW:
            few = [n for n in chain.from_iterable(parts) if self._matches(n, labels)]
            return [self._held(number) for number in few]
        found = np.zeros(len(self._terms), dtype=np.bool_)
        self._open.mark(found, [namespace], to=True)
        self._insisting.mark(found, insisting, to=True)
        found &= self._all_lines().matching(labels)
        if np.count_nonzero(found) <= FEW:
            return [self._held(number) for number in found.nonzero()[0].tolist()]
        # With thousands of terms no two classes match the same ones: this class gets its own
        # counters.
        return [(pod_class.number, *item) for item in self._holders_of(found).items()]

    def _matches(self, number: int, labels: Labels) -> bool:
        selector = self._terms[number].selector
        return selector is not None and selector.matches(labels)

    def _held(self, number: int) -> tuple[object, str, IntArray]:
        term = self._terms[number]
        return term, term.topology_key, np.array(self._holders[number], dtype=np.int64)

    def _all_lines(self) -> "_LineIndex":
        if self._lines is None:
            occurring = {item for pod_class in self._classes for item in pod_class.labels.items()}
            selectors = [term.selector for term in self._terms if term.selector is not None]
            self._lines = _LineIndex(selectors, occurring)
        return self._lines

    def _holders_of(self, terms: BoolArray) -> dict[str, IntArray]:
        """Return the classes that hold any of the marked terms, by topology key."""
        if not self._held_by:
            pairs: dict[str, list[tuple[int, int]]] = {}
            for number, (term, holders) in enumerate(zip(self._terms, self._holders, strict=True)):
                pairs.setdefault(term.topology_key, []).extend(
                    (number, holder) for holder in holders
                )
            for key, of_key in pairs.items():
                numbers, holding = np.array(of_key, dtype=np.int64).T
                self._held_by[key] = numbers, holding
        found: dict[str, IntArray] = {}
        for key, (numbers, holding) in self._held_by.items():
            marks = np.zeros(len(self._classes), dtype=np.bool_)
            marks[holding[terms[numbers]]] = True
            if marks.any():
                found[key] = marks.nonzero()[0]
        return found


class _LineIndex:
    """Finds which of many selectors match given labels, by the labels in their expressions."""

    def __init__(self, selectors: Sequence[LabelSelector], occurring: set[tuple[str, str]]) -> None:
        """Build an index for labels that occur; no other value is looked up."""
        self._count = len(selectors)
        self._asking = np.zeros(len(selectors), dtype=np.int64)
        """How many expressions of each selector ask for a label."""
        self._asked = _Lists[Label]()
        """By label, the selectors with an expression that it satisfies, once per expression."""
        self._excluded = _Lists[Label]()
        """By label, those with an expression that it violates."""
        for number, selector in enumerate(selectors):
            for line in _lines(selector):
                named = _labels_of(line)
                if line.operator in {"Gt", "Lt"}:
                    named = [label for label in occurring if _holds(line, label)]
                index = self._excluded if line.operator in _EXCLUDING else self._asked
                for label in named:
                    if label[1] is None or label in occurring:
                        index.add(label, number)
                self._asking[number] += line.operator not in _EXCLUDING

    def matching(self, labels: Labels) -> BoolArray:
        """Return for each selector whether it matches the labels."""
        satisfied = np.zeros(self._count, dtype=np.int64)
        for label in _labels(labels):
            if label in self._asked.lists:
                satisfied += np.bincount(self._asked.array(label), minlength=self._count)
        found: BoolArray = satisfied == self._asking
        self._excluded.mark(found, _labels(labels), to=False)
        return found


def _labels(labels: Labels) -> list[Label]:
    """Return what expressions may name of these labels: each with its value, and for any value."""
    return [label for key, value in labels.items() for label in ((key, value), (key, None))]


def _lines(selector: LabelSelector) -> Sequence[Requirement]:
    """Return the expressions of a selector, with its matchLabels as expressions too."""
    if not selector.match_labels:
        return selector.match_expressions
    wanted = [
        Requirement(key=key, operator="In", values=(value,))
        for key, value in selector.match_labels.items()
    ]
    return (*wanted, *selector.match_expressions)


def _labels_of(line: Requirement) -> Sequence[Label]:
    """Return the labels that an expression names, each once."""
    if line.operator in {"Exists", "DoesNotExist"}:
        return ((line.key, None),)
    return [(line.key, value) for value in dict.fromkeys(line.values)]


def _holds(line: Requirement, label: Label) -> bool:
    key, value = label
    return value is not None and line.matches({key: value})


def labels_insisted_on(selector: LabelSelector) -> tuple[str, tuple[str | None, ...]] | None:
    """Return a label key without which the selector never matches, and its values.

    The values are (None,) for any value. None if the selector requires no label.
    """
    if selector.match_labels:
        key, value = min(selector.match_labels.items())
        return key, (value,)
    present: str | None = None
    for line in selector.match_expressions:
        if line.operator == "In":
            return line.key, tuple(dict.fromkeys(line.values))
        if line.operator == "Exists" and present is None:
            present = line.key
    return None if present is None else (present, (None,))
