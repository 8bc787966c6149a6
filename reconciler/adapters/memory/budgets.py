"""PodDisruptionBudgets of the in-memory world, with what each allows at this moment."""

from collections import Counter
from collections.abc import Iterable

from reconciler.adapters.memory.settings import BudgetShape
from reconciler.adapters.memory.workloads import budget_status, is_expected
from reconciler.model.cluster import Pod, PodDisruptionBudget
from reconciler.model.frozen import Labels


class MemoryBudgets:
    """Budgets, and how many healthy pods each of them covers."""

    def __init__(self) -> None:
        self._shapes: list[BudgetShape] = []
        self._covered: dict[tuple[str, Labels], tuple[int, ...]] = {}
        """The budgets that cover pods of a namespace with these labels."""
        self._healthy: Counter[int] = Counter()
        """How many ready pods each budget covers."""
        self._expected: Counter[int] = Counter()
        """How many pods the controllers of its pods are to have, of each budget.

        Source: getExpectedScale of kubernetes/pkg/controller/disruption, 1.36.
        """
        self._as_shown: dict[int, PodDisruptionBudget] = {}
        """Each budget as it was last returned."""

    def put(self, shape: BudgetShape, pods: Iterable[Pod]) -> None:
        """Create a budget, or change the one of its name, over existing pods."""
        self._without(shape.namespace, shape.name)
        self._shapes.append(shape)
        self._count_again(pods)

    def remove(self, namespace: str, name: str, pods: Iterable[Pod]) -> None:
        """Delete a budget."""
        self._without(namespace, name)
        self._count_again(pods)

    def _without(self, namespace: str, name: str) -> None:
        self._shapes = [b for b in self._shapes if (b.namespace, b.name) != (namespace, name)]

    def _count_again(self, pods: Iterable[Pod]) -> None:
        self._as_shown.clear()
        self._covered.clear()
        self._healthy.clear()
        self._expected.clear()
        for pod in pods:
            self.count(pod, 1)

    def count(self, pod: Pod | None, amount: int) -> None:
        """Count a pod that was added or removed, for its budgets."""
        if pod is not None and is_expected(pod):
            healthy = pod.ready and not pod.deleting
            for number in self.covering(pod):
                self._expected[number] += amount
                self._healthy[number] += amount * healthy

    def now(self) -> list[PodDisruptionBudget]:
        """Return each budget with what it allows at this moment."""
        return [self._shown(number) for number in range(len(self._shapes))]

    def of(self, pod: Pod) -> list[PodDisruptionBudget]:
        """Return the budgets that cover a pod."""
        return [self._shown(number) for number in self.covering(pod)]

    def _shown(self, number: int) -> PodDisruptionBudget:
        """Return the current budget; the same object for as long as nothing changes."""
        made = budget_status(self._shapes[number], self._expected[number], self._healthy[number])
        known = self._as_shown.get(number)
        if known is None or known != made:
            known = self._as_shown[number] = made
        return known

    def covering(self, pod: Pod) -> tuple[int, ...]:
        """Return the numbers of the budgets that cover a pod; cached until a budget changes."""
        if not self._shapes:
            return ()
        key = (pod.key.namespace, pod.labels)
        known = self._covered.get(key)
        if known is None:
            known = self._covered[key] = tuple(
                number
                for number, shape in enumerate(self._shapes)
                if shape.namespace == pod.key.namespace
                and shape.selector is not None
                and shape.selector.matches(pod.labels)
            )
        return known
