"""PodDisruptionBudgets over a whole plan: what one policy uses, no other can use again.

Source: pkg/registry/core/pod/storage/eviction.go, read 2026-08: two budgets over a pod are refused;
an unhealthy pod is evicted regardless of the budget under AlwaysAllow. Its other exemptions (pods
that have not started, unhealthy pods while the application is healthy) are not used: both may
change between plan and eviction.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final

from reconciler.model.cluster import Pod, PodDisruptionBudget
from reconciler.model.frozen import NO_LABELS, Labels
from reconciler.model.ids import PodKey
from reconciler.model.interning import InternTable, References, released_with
from reconciler.model.selectors import LabelSelector

ALWAYS_ALLOW = "AlwaysAllow"
LABELS_MAX = 20_000
"""How many sets of labels of one namespace are cached, twice over: most snapshots have the same
pods."""
LINES_MAX = 1024
"""With how many expressions one set of labels is compared in its namespace.

A tenant may create any number of budgets, each with hundreds of expressions, and change them before
each plan.
"""

Shape = tuple[str, LabelSelector | None, bool]
"""Of a budget: its namespace, its selector, and whether it is unreadable."""


class _Index:
    """Some of the budgets of a namespace, by the labels that they require."""

    def __init__(self, selectors: Sequence[LabelSelector | None], numbers: Iterable[int]) -> None:
        """Index the budgets with these numbers.

        A budget is found by the label that the fewest of them require: in namespaces with hundreds
        of them every pod is looked up.
        """
        self._selectors = selectors
        self._by_label: dict[tuple[str, str], list[int]] = {}
        """Budgets by one label that they require."""
        self._lines: Counter[tuple[str, str] | None] = Counter()
        """How many expressions are compared for that label; for None those of `_others`."""
        self._certain: set[int] = set()
        """Those that require nothing else."""
        self._others: list[int] = []
        """Those that require no label."""
        asked = {n: s.match_labels if (s := selectors[n]) else NO_LABELS for n in numbers}
        common = Counter(label for labels in asked.values() for label in labels.items())
        for number, labels in asked.items():
            lines = _lines(selectors[number])
            if not labels:
                self._others.append(number)
                self._lines[None] += lines
                continue
            rarest = min(labels.items(), key=lambda label: (common[label], label))
            self._by_label.setdefault(rarest, []).append(number)
            if lines == 1:
                self._certain.add(number)
            else:
                self._lines[rarest] += lines

    def lines(self, labels: Labels) -> int:
        """Return how many expressions `selecting` compares with the labels."""
        return self._lines[None] + sum([self._lines[label] for label in labels.items()])

    def selecting(self, labels: Labels) -> list[int]:
        """Return the numbers of those that cover pods with these labels."""
        numbers = list(self._others)
        for found in map(self._by_label.get, labels.items()):
            numbers += found or ()
        return [n for n in numbers if n in self._certain or self._selects(n, labels)]

    def _selects(self, number: int, labels: Labels) -> bool:
        selector = self._selectors[number]
        return selector is not None and selector.matches(labels)


Known = InternTable[int, tuple[References, tuple[int, ...] | None]]
"""Numbers of the budgets that cover pods, by the `id` of the pods' labels."""


class _NamespaceCoverage:
    """Which budgets of one namespace cover a pod, whatever they allow.

    Args:
        selectors: What the budgets select, by number.
        before: The budgets of the namespace in an earlier plan. Its answers are kept for unchanged
            budgets: if a tenant rewrites one of a thousand, pods are compared with that one only.
    """

    def __init__(
        self, selectors: Sequence[LabelSelector | None], before: "_NamespaceCoverage | None" = None
    ) -> None:
        self.selectors: Final = selectors
        self._index = _Index(selectors, range(len(selectors)))
        self.covering: Final[Known] = InternTable(LABELS_MAX)
        self._known_before: Known | None = None
        if before is not None:
            self._known_before = before.covering
            self._now, added = _renumbered(before.selectors, selectors)
            self._added = _Index(selectors, added)

    def of(self, labels: Labels) -> tuple[int, ...] | None:
        """Return the numbers of the budgets that cover pods with these labels.

        None if that takes more than `LINES_MAX` expressions.
        """
        known = self.covering.get(id(labels))
        if known is None:
            held = released_with(self.covering, id(labels), labels)
            known = self.covering.put(id(labels), (held, self._selecting(labels)))
        return known[1]

    def _selecting(self, labels: Labels) -> tuple[int, ...] | None:
        if self._index.lines(labels) > LINES_MAX:
            return None
        kept = self._kept(labels)
        if kept is None:
            return tuple(sorted(self._index.selecting(labels)))
        return tuple(sorted([*kept, *self._added.selecting(labels)]))

    def _kept(self, labels: Labels) -> list[int] | None:
        """Return the unchanged budgets that cover the pods; None if that is not known."""
        known = self._known_before.get(id(labels)) if self._known_before is not None else None
        if known is None or known[1] is None:
            return None
        return [now for before in known[1] if (now := self._now[before]) is not None]


def _renumbered(
    before: Sequence[LabelSelector | None], now: Sequence[LabelSelector | None]
) -> tuple[list[int | None], list[int]]:
    """Return the new number of each earlier budget, and the numbers of the new ones.

    Budgets with the same selector are interchangeable.
    """
    left: dict[LabelSelector | None, list[int]] = {}
    for number in reversed(range(len(now))):
        left.setdefault(now[number], []).append(number)
    found = [same.pop() if (same := left.get(selector)) else None for selector in before]
    return found, sorted(number for same in left.values() for number in same)


def _lines(selector: LabelSelector | None) -> int:
    if selector is None:
        return 0
    return len(selector.match_labels) + len(selector.match_expressions)


class Coverage:
    """Which budgets cover a pod, whatever they allow.

    Args:
        shapes: The shapes of all budgets, those of each namespace one after the other.
        before: The coverage of an earlier plan. Namespaces with the same budgets are kept: if a
            tenant changes budgets, only those that changed are compared again.
    """

    def __init__(self, shapes: Sequence[Shape], before: "Coverage | None" = None) -> None:
        self.shapes: Final = shapes
        self._of: dict[str, tuple[int, _NamespaceCoverage]] = {}
        """By namespace the number of its first budget, and its budgets."""
        first = 0
        for namespace, group in groupby(shapes, key=itemgetter(0)):
            selectors = tuple([selector for _, selector, _ in group])
            known = before.known(namespace) if before else None
            if known is None or known.selectors != selectors:
                known = _NamespaceCoverage(selectors, known)
            self._of[namespace] = first, known
            first += len(selectors)
        self._unreadable = {namespace for namespace, _, unreadable in shapes if unreadable}

    def known(self, namespace: str) -> _NamespaceCoverage | None:
        """Return the budgets of a namespace; None if it has none."""
        found = self._of.get(namespace)
        return found[1] if found is not None else None

    def has_any(self, namespace: str) -> bool:
        """Return whether there is any budget in the namespace."""
        return namespace in self._of

    def readable(self, pod: Pod) -> bool:
        """Return whether it is known which budgets cover the pod.

        It is not if a budget of its namespace is unreadable, or if they have too many expressions
        (`LINES_MAX`).
        """
        namespace = pod.key.namespace
        if namespace in self._unreadable:
            return False
        known = self._of.get(namespace)
        return known is None or known[1].of(pod.labels) is not None

    def of(self, pod: Pod) -> tuple[int, ...]:
        """Return the numbers of the budgets that cover the pod; empty if it is not `readable`."""
        known = self._of.get(pod.key.namespace)
        if known is None:
            return ()
        first, budgets = known
        found = budgets.of(pod.labels)
        return tuple([first + number for number in found]) if found else ()


class _LastCoverage:
    """The coverage that was asked for last, and no other.

    Counts of budgets change with every pod, their selectors hardly ever. A tenant may write
    megabytes of budgets before each plan, so those of earlier plans are not kept.
    """

    def __init__(self) -> None:
        self._last = Coverage(())

    def of(self, shapes: tuple[Shape, ...]) -> Coverage:
        """Return the coverage of budgets of these shapes."""
        last = self._last
        if last.shapes != shapes:
            last = self._last = Coverage(shapes, last)
        return last


_COVERAGE: Final = _LastCoverage()


class BudgetLedger:
    """How many disruptions each budget still allows, after what the plan uses."""

    def __init__(self, budgets: Iterable[PodDisruptionBudget]) -> None:
        self._budgets = sorted(budgets, key=lambda b: (b.namespace, b.name))
        self._left = [b.disruptions_allowed for b in self._budgets]
        shapes = tuple([(b.namespace, b.selector, b.unreadable) for b in self._budgets])
        self.coverage: Final = _COVERAGE.of(shapes)

    def refusal(self, pods: Iterable[Pod], rounds_max: int = 1) -> str | None:
        """Return why the pods cannot all be disrupted within `rounds_max` rounds; None if they can.

        Each budget is assumed to allow as many disruptions in each round as now, and at least one.
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

    def covering(self, pods: Iterable[Pod]) -> Counter[int]:
        """Count by the number of each budget how many of the pods it covers."""
        return Counter(number for pod in pods for number in self.coverage.of(pod))

    def refuses_for_long(self, pods: Iterable[Pod], rounds_max: int, over: Counter[int]) -> bool:
        """Return whether `refusal` remains once the pods disrupted now are healthy again.

        Args:
            pods: The pods.
            rounds_max: The rounds.
            over: By number of the budget, how many pods use it up now and will soon not do so, in
                addition to those that this plan disrupts.
        """
        return any(
            asked > max(0, _surplus(self._budgets[number]) + over[number]) * rounds_max
            for number, asked in self._asked(pods).items()
        )

    def rounds(self, pods: Iterable[Pod]) -> int:
        """Return how many rounds it takes to disrupt the pods, if every budget allows one now."""
        asked = self._asked(pods)
        return max((-(-count // max(1, self._left[n])) for n, count in asked.items()), default=1)

    def in_rounds(self, pods: Iterable[Pod]) -> list[Pod]:
        """Return the pods in the order of disruption: round by round, by name in each.

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
        """Use up the disruptions of these pods."""
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


def _surplus(budget: PodDisruptionBudget) -> int:
    """Return how many more pods are healthy than the budget asks for; negative if fewer are."""
    return budget.disruptions_allowed - max(0, budget.desired_healthy - budget.current_healthy)


def _is_exempt(pod: Pod, budget: PodDisruptionBudget) -> bool:
    """Return whether the Eviction API evicts the pod without asking the budget."""
    if pod.deleting or pod.finished:
        return True
    return budget.unhealthy_pod_eviction_policy == ALWAYS_ALLOW and not pod.ready
