"""PodDisruptionBudgets over a whole plan: what one policy uses, no other can use again.

Source: pkg/registry/core/pod/storage/eviction.go, read 2026-08: two budgets over a pod are
refused; an unhealthy pod is evicted whatever the budget says under AlwaysAllow. Its other
exemptions (pods that have not started, unhealthy pods while the application is healthy) are not
used: both may change between plan and eviction.
"""

from collections.abc import Iterable

from reconciler.model.cluster import Pod, PodDisruptionBudget
from reconciler.model.frozen import Labels

ALWAYS_ALLOW = "AlwaysAllow"


class BudgetLedger:
    """How many disruptions each budget still allows, given all that the plan uses."""

    def __init__(self, budgets: Iterable[PodDisruptionBudget]) -> None:
        self._budgets = sorted(budgets, key=lambda b: (b.namespace, b.name))
        self._left = [b.disruptions_allowed for b in self._budgets]
        self._by_label: dict[str, dict[tuple[str, str], list[int]]] = {}
        """Budgets by namespace and one label that they insist on."""
        self._certain: set[int] = set()
        """Those that ask for nothing beside it."""
        self._by_namespace_alone: dict[str, list[int]] = {}
        """Those that insist on none."""
        for number, budget in enumerate(self._budgets):
            self._index(number, budget)
        self._namespaces = {b.namespace for b in self._budgets}
        self._unreadable = {b.namespace for b in self._budgets if b.unreadable}
        self._covering: dict[tuple[str, int], tuple[Labels, tuple[int, ...]]] = {}
        """By namespace and identity of labels, which the values keep alive."""

    def _index(self, number: int, budget: PodDisruptionBudget) -> None:
        """Namespaces with hundreds of budgets are asked about every pod: look, do not search."""
        selector = budget.selector
        labels = selector.match_labels if selector is not None else {}
        for key, value in labels.items():
            of_namespace = self._by_label.setdefault(budget.namespace, {})
            of_namespace.setdefault((key, value), []).append(number)
            if selector is not None and len(labels) == 1 and not selector.match_expressions:
                self._certain.add(number)
            return
        self._by_namespace_alone.setdefault(budget.namespace, []).append(number)

    def readable(self, namespace: str) -> bool:
        """Whether every budget of the namespace could be read."""
        return namespace not in self._unreadable

    def covering(self, pod: Pod) -> tuple[int, ...]:
        """The numbers of the budgets that cover the pod."""
        namespace = pod.key.namespace
        if namespace not in self._namespaces:
            return ()
        key = (namespace, id(pod.labels))
        known = self._covering.get(key)
        if known is None:
            known = self._covering[key] = (pod.labels, self._selecting(namespace, pod.labels))
        return known[1]

    def _selecting(self, namespace: str, labels: Labels) -> tuple[int, ...]:
        numbers = list(self._by_namespace_alone.get(namespace, ()))
        insisting = self._by_label.get(namespace)
        if insisting:
            for found in map(insisting.get, labels.items()):
                numbers += found or ()
        if len(numbers) > 1:
            numbers.sort()
        certain, budgets = self._certain, self._budgets
        return tuple([n for n in numbers if n in certain or _selects(budgets[n], labels)])

    def refusal(self, pods: Iterable[Pod]) -> str:
        """Why the pods cannot all be disrupted now; empty when they can."""
        for number, asked in self._asked(pods).items():
            if asked > self._left[number]:
                budget = self._budgets[number]
                return (
                    f"budget {budget.namespace}/{budget.name} allows {self._left[number]} more "
                    f"disruptions, {asked} are needed"
                )
        return ""

    def take(self, pods: Iterable[Pod]) -> None:
        """Use the disruptions up."""
        for number, asked in self._asked(pods).items():
            self._left[number] -= asked

    def take_one(self, pod: Pod) -> bool:
        """Use one pod's disruption up if it is allowed; whether it was."""
        if self.refusal((pod,)):
            return False
        self.take((pod,))
        return True

    def _asked(self, pods: Iterable[Pod]) -> dict[int, int]:
        asked: dict[int, int] = {}
        if not self._budgets:
            return asked
        for pod in pods:
            for number in self.covering(pod):
                if not _is_exempt(pod, self._budgets[number]):
                    asked[number] = asked.get(number, 0) + 1
        return asked


def _selects(budget: PodDisruptionBudget, labels: Labels) -> bool:
    return budget.selector is not None and budget.selector.matches(labels)


def _is_exempt(pod: Pod, budget: PodDisruptionBudget) -> bool:
    """Whether the Eviction API lets the pod go without asking the budget."""
    if pod.deleting or pod.finished:
        return True
    return budget.unhealthy_pod_eviction_policy == ALWAYS_ALLOW and not pod.ready
