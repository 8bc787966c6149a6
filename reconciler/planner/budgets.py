"""PodDisruptionBudgets over a whole plan: what one policy uses, no other can use again.

Source: pkg/registry/core/pod/storage/eviction.go, read 2026-08: two budgets over a pod are
refused; an unhealthy pod is evicted whatever the budget says under AlwaysAllow. Its other
exemptions (pods that have not started, unhealthy pods while the application is healthy) are not
used: both may change between plan and eviction.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from reconciler.model.cluster import Pod, PodDisruptionBudget
from reconciler.model.frozen import Labels
from reconciler.model.ids import PodKey
from reconciler.model.interning import InternTable
from reconciler.model.selectors import LabelSelector

ALWAYS_ALLOW = "AlwaysAllow"
LABELS_MAX = 20_000
"""Sets of labels whose budgets are remembered, twice over: most snapshots show the same pods."""

Shape = tuple[str, LabelSelector | None, bool]
"""Of a budget: its namespace, what it selects, and whether it cannot be read."""


class Coverage:
    """Which budgets cover a pod, whatever they allow."""

    def __init__(self, shapes: Sequence[Shape]) -> None:
        self._selectors = [selector for _, selector, _ in shapes]
        self._by_label: dict[str, dict[tuple[str, str], list[int]]] = {}
        """Budgets by namespace and one label that they insist on."""
        self._certain: set[int] = set()
        """Those that ask for nothing beside it."""
        self._by_namespace_alone: dict[str, list[int]] = {}
        """Those that insist on none."""
        for number, (namespace, selector, _) in enumerate(shapes):
            self._index(number, namespace, selector)
        self._namespaces = {namespace for namespace, _, _ in shapes}
        self._unreadable = {namespace for namespace, _, unreadable in shapes if unreadable}
        self._known: InternTable[tuple[str, int], tuple[Labels, tuple[int, ...]]]
        self._known = InternTable(LABELS_MAX)
        """By namespace and identity of labels, which the values keep alive."""

    def _index(self, number: int, namespace: str, selector: LabelSelector | None) -> None:
        """Index budgets by label: namespaces with hundreds of them are asked about every pod."""
        labels = selector.match_labels if selector is not None else {}
        for key, value in labels.items():
            of_namespace = self._by_label.setdefault(namespace, {})
            of_namespace.setdefault((key, value), []).append(number)
            if selector is not None and len(labels) == 1 and not selector.match_expressions:
                self._certain.add(number)
            return
        self._by_namespace_alone.setdefault(namespace, []).append(number)

    def has_any(self, namespace: str) -> bool:
        """Return whether there is any budget in the namespace."""
        return namespace in self._namespaces

    def readable(self, namespace: str) -> bool:
        """Return whether every budget of the namespace could be read."""
        return namespace not in self._unreadable

    def of(self, pod: Pod) -> tuple[int, ...]:
        """Return the numbers of the budgets that cover the pod."""
        namespace = pod.key.namespace
        if namespace not in self._namespaces:
            return ()
        key = (namespace, id(pod.labels))
        known = self._known.get(key)
        if known is None:
            known = self._known.put(key, (pod.labels, self._selecting(namespace, pod.labels)))
        return known[1]

    def _selecting(self, namespace: str, labels: Labels) -> tuple[int, ...]:
        numbers = list(self._by_namespace_alone.get(namespace, ()))
        insisting = self._by_label.get(namespace)
        if insisting:
            for found in map(insisting.get, labels.items()):
                numbers += found or ()
        return tuple(sorted(n for n in numbers if n in self._certain or self._selects(n, labels)))

    def _selects(self, number: int, labels: Labels) -> bool:
        selector = self._selectors[number]
        return selector is not None and selector.matches(labels)


@lru_cache(maxsize=4)
def coverage_of(shapes: tuple[Shape, ...]) -> Coverage:
    """The coverage of budgets: their counts change with every pod, what they select hardly ever."""
    return Coverage(shapes)


class BudgetLedger:
    """How many disruptions each budget still allows, given all that the plan uses."""

    def __init__(self, budgets: Iterable[PodDisruptionBudget]) -> None:
        self._budgets = sorted(budgets, key=lambda b: (b.namespace, b.name))
        self._left = [b.disruptions_allowed for b in self._budgets]
        shapes = tuple([(b.namespace, b.selector, b.unreadable) for b in self._budgets])
        self.coverage: Final = coverage_of(shapes)

    def refusal(self, pods: Iterable[Pod], rounds_max: int = 1) -> str | None:
        """Return why the pods cannot all be disrupted within so many rounds; None when they can.

        In each round a budget is taken to allow as many disruptions as now, and at least one.
        """
        for number, asked in self._asked(pods).items():
            left = max(0, self._left[number])
            if asked > left * rounds_max:
                budget = self._budgets[number]
                at_most = f" in at most {rounds_max} rounds" if left and rounds_max > 1 else ""
                return (
                    f"budget {budget.namespace}/{budget.name} allows {left} more "
                    f"disruptions, {asked} are needed{at_most}"
                )
        return None

    def rounds(self, pods: Iterable[Pod]) -> int:
        """How many rounds it takes to disrupt the pods, where every budget allows one now."""
        asked = self._asked(pods)
        return max((-(-count // max(1, self._left[n])) for n, count in asked.items()), default=1)

    def in_rounds(self, pods: Iterable[Pod]) -> list[Pod]:
        """The pods in the order in which they are disrupted: round by round, by name in each.

        See `rounds`.
        """
        ordered = sorted(pods, key=lambda pod: pod.key)
        asked: dict[int, int] = {}
        round_of: dict[PodKey, int] = {}
        for pod in ordered:
            of_pod = self._asked((pod,))
            round_of[pod.key] = max(
                (asked.get(number, 0) // max(1, self._left[number]) for number in of_pod),
                default=0,
            )
            for number in of_pod:
                asked[number] = asked.get(number, 0) + 1
        return sorted(ordered, key=lambda pod: round_of[pod.key])

    def take_now(self, pods: Iterable[Pod]) -> list[Pod]:
        """Use up what is allowed now; return the pods, by name, that may be disrupted with it."""
        return [pod for pod in sorted(pods, key=lambda pod: pod.key) if self.take_one(pod)]

    def take(self, pods: Iterable[Pod]) -> None:
        """Use the disruptions up."""
        for number, asked in self._asked(pods).items():
            self._left[number] -= asked

    def take_one(self, pod: Pod) -> bool:
        """Use up the disruption of one pod if it is allowed; return whether it was."""
        if self.refusal((pod,)) is not None:
            return False
        self.take((pod,))
        return True

    def _asked(self, pods: Iterable[Pod]) -> dict[int, int]:
        asked: dict[int, int] = {}
        if not self._budgets:
            return asked
        for pod in pods:
            for number in self.coverage.of(pod):
                if not _is_exempt(pod, self._budgets[number]):
                    asked[number] = asked.get(number, 0) + 1
        return asked


def _is_exempt(pod: Pod, budget: PodDisruptionBudget) -> bool:
    """Return whether the Eviction API lets the pod go without asking the budget."""
    if pod.deleting or pod.finished:
        return True
    return budget.unhealthy_pod_eviction_policy == ALWAYS_ALLOW and not pod.ready
