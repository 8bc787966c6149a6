"""All rules over one pod, folded into one ruling."""

from collections.abc import Iterable, Iterator

from reconciler.model.cluster import Pod
from reconciler.planner.budgets import BudgetLedger
from reconciler.planner.rules import (
    annotations,
    budgets,
    controllers,
    critical,
    daemons,
    ending,
    grace,
    jobs,
    local_storage,
    system_pods,
    unreadable,
)
from reconciler.planner.rules.verdict import NO_OPINION, Rule, Ruling, Subject, Terms, Verdict

BEFORE: tuple[Rule, ...] = (
    ending.finished,
    unreadable.judge,
    ending.deleting,
    annotations.forbids,
    daemons.judge,
)
"""The first that has an opinion decides."""
GUESSES_ALONE: tuple[Rule, ...] = (controllers.judge, jobs.judge, local_storage.judge)
"""Guesses that the pod's owner would mind, from the pod alone."""
GUESSES: tuple[Rule, ...] = (system_pods.judge,)
"""Those that ask which budgets cover the pod. Both are lifted when the owner says otherwise."""
FIRM: tuple[Rule, ...] = (critical.judge, grace.judge, budgets.judge)
"""Hold whatever the owner says."""

MOVABLE = Ruling(verdict=Verdict.OK)


def fold(subject: Subject, terms: Terms) -> Ruling:
    """What becomes of the pod when its node is drained voluntarily.

    SKIP: nothing to do. WAIT: it goes by itself. BLOCK: its node stays. OK: it may be moved as
    far as rules about the pod alone say; budgets' counts and a destination are asked elsewhere.
    """
    alone = fold_alone(subject, terms)
    return alone if alone.verdict is not Verdict.NO_OPINION else fold_rest(subject, terms)


def fold_alone(subject: Subject, terms: Terms) -> Ruling:
    """What becomes of the pod whatever budgets there are; no opinion when it depends on them."""
    for rule in BEFORE:
        ruling = rule(subject, terms)
        if ruling.verdict is not Verdict.NO_OPINION:
            return ruling
    if not _is_lifted(subject, terms):
        for rule in GUESSES_ALONE:
            ruling = rule(subject, terms)
            if ruling.verdict is Verdict.BLOCK:
                return ruling
    return NO_OPINION


def fold_rest(subject: Subject, terms: Terms) -> Ruling:
    """What becomes of a pod of which `fold_alone` has no opinion."""
    for rule in FIRM if _is_lifted(subject, terms) else (*GUESSES, *FIRM):
        ruling = rule(subject, terms)
        if ruling.verdict is Verdict.BLOCK:
            return ruling
    return MOVABLE


def _is_lifted(subject: Subject, terms: Terms) -> bool:
    return annotations.allows(subject, terms).verdict is Verdict.OK


class Judge:
    """Rulings under one set of terms, remembered: replicas share spec and labels, and a ruling.

    It must not outlive the snapshot whose pods it was shown: it knows them by identity.
    """

    def __init__(self, terms: Terms, ledger: BudgetLedger) -> None:
        self._terms = terms
        self._ledger = ledger
        self._alone: dict[tuple[object, ...], Ruling] = {}
        """By what can be told without asking which budgets cover the pod."""
        self._known: dict[tuple[object, ...], Ruling] = {}
        self._seen: dict[tuple[object, ...], Ruling] = {}
        """The same by the identity of labels, which budgets select."""

    def rulings(self, pods: Iterable[Pod]) -> Iterator[tuple[Pod, Ruling]]:
        """What becomes of each pod (see `fold`), one after the other."""
        ruling = self.ruling
        return ((pod, ruling(pod)) for pod in pods)

    def ruling(self, pod: Pod) -> Ruling:
        """What becomes of the pod (see `fold`)."""
        noted = id(pod.annotations) if pod.annotations else 0
        told = (id(pod.traits), noted, pod.owner and pod.owner.kind)
        alone = self._alone.get(told)
        if alone is None:
            alone = self._alone[told] = fold_alone(Subject(pod=pod), self._terms)
        if alone.verdict is not Verdict.NO_OPINION:
            return alone
        key = (*told, id(pod.labels))
        seen = self._seen.get(key)
        if seen is None:
            seen = self._seen[key] = self._ruling(pod, told)
        return seen

    def _ruling(self, pod: Pod, told: tuple[object, ...]) -> Ruling:
        budgets = len(self._ledger.covering(pod))
        known = self._known.get((*told, budgets))
        if known is None:
            subject = Subject(
                pod=pod,
                budgets=budgets,
                budgets_readable=self._ledger.readable(pod.key.namespace),
            )
            known = self._known[*told, budgets] = fold_rest(subject, self._terms)
        return known
