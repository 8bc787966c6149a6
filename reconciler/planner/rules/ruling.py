"""Combines all rules over one pod into one ruling."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from reconciler.model.actions import DO_NOT_DRAIN
from reconciler.model.cluster import Pod
from reconciler.model.frozen import NO_LABELS
from reconciler.model.interning import InternTable, References, released_with
from reconciler.planner.pod_disruption_budgets import Coverage
from reconciler.planner.rules import (
    annotations,
    budgets,
    complexity,
    controllers,
    critical,
    daemons,
    ending,
    grace,
    jobs,
    local_storage,
    system_pods,
    tolerations,
    unreadable,
)
from reconciler.planner.rules.verdict import Rule, Ruling, Subject, Terms, Verdict

BEFORE: tuple[Rule, ...] = (
    ending.finished,
    unreadable.judge,
    ending.deleting,
    annotations.forbids,
    daemons.judge,
)
"""The first rule that has an opinion decides."""
GUESSES: tuple[Rule, ...] = (
    controllers.judge,
    jobs.judge,
    local_storage.judge,
    system_pods.judge,
)
"""Assumptions about what the pod's owner wants: lifted if the owner says otherwise."""
FIRM: tuple[Rule, ...] = (
    complexity.judge,
    critical.judge,
    grace.judge,
    tolerations.judge,
    budgets.judge,
)
"""Apply whatever the owner says."""

OVERDUE: tuple[Rule, ...] = (
    ending.finished,
    unreadable.judge,
    ending.deleting,
    daemons.judge,
)
"""For pods of overdue nodes."""

FAILED: tuple[Rule, ...] = (
    unreadable.judge,
    ending.deleting,
    annotations.forbids,
    daemons.judge,
    controllers.judge,
    local_storage.judge,
    critical.judge,
)
"""For failed pods: no Service sends them requests, and budgets do not count them."""

RULINGS_MAX = 20_000
"""How many rulings under one set of terms are cached, twice over."""
TERMS_MAX = 16
"""For how many sets of terms rulings are cached."""
MOVABLE = Ruling(verdict=Verdict.OK)


def rule_on(subject: Subject, terms: Terms) -> Ruling:
    """Return the ruling on the pod for a voluntary drain of its node.

    SKIP: nothing to do. WAIT: the pod is ending by itself. BLOCK: its node stays. OK: it may be
    moved as far as rules about the pod alone say; budgets' counts and a destination are checked
    elsewhere.
    """
    for rule in OVERDUE if terms.overdue else BEFORE:
        ruling = rule(subject, terms)
        if ruling.verdict is not Verdict.NO_OPINION:
            return ruling
    if terms.overdue:
        return MOVABLE
    for rule in FIRM if _is_lifted(subject, terms) else (*GUESSES, *FIRM):
        ruling = rule(subject, terms)
        if ruling.verdict is Verdict.BLOCK:
            return ruling
    return MOVABLE


def rule_on_failed(subject: Subject, terms: Terms) -> Ruling:
    """Return whether a failed pod may be removed: OK, or the ruling that keeps it."""
    for rule in FAILED:
        ruling = rule(subject, terms)
        if ruling.verdict is not Verdict.NO_OPINION:
            return ruling
    return MOVABLE


def _is_lifted(subject: Subject, terms: Terms) -> bool:
    return annotations.allows(subject, terms).verdict is Verdict.OK


_Rulings = InternTable[tuple[object, ...], tuple[References, Ruling]]
"""By the `id` of what a pod shares with its replicas."""


class Judge:
    """Rulings under one set of terms, cached: replicas share spec, labels and ruling.

    Only a pod that an annotation keeps for a time from its start, or that takes long to end, has a
    ruling of its own meanwhile.
    """

    def __init__(self, terms: Terms, coverage: Coverage, at: datetime, known: _Rulings) -> None:
        """Build a judge.

        Args:
            terms: What the config allows.
            coverage: Which budgets cover a pod.
            at: The time of the plan.
            known: Rulings under these terms and this coverage; more are added.
        """
        self._terms = terms
        self._coverage = coverage
        self._at = at
        self._known = known

    def rulings(self, pods: Iterable[Pod]) -> Iterator[tuple[Pod, Ruling]]:
        """Return the ruling on each pod (see `rule_on`), one after the other."""
        ruling = self.ruling
        return ((pod, ruling(pod)) for pod in pods)

    def ruling(self, pod: Pod) -> Ruling:
        """Return the ruling on the pod (see `rule_on`)."""
        traits, notes = pod.traits, pod.annotations
        late = ending.ends_late(pod, self._terms, self._at) if pod.deleting else None
        if late is not None:
            return late
        until = annotations.protected_until(pod, self._at) if notes else None
        if until is not None:
            return self._ruling(pod, until)
        labels = pod.labels or NO_LABELS
        if DO_NOT_DRAIN not in labels and not self._coverage.has_any(traits.namespace):
            labels = NO_LABELS
        key = (id(traits), id(labels), id(notes) if notes else 0, pod.owner and pod.owner.kind)
        known = self._known.get(key)
        if known is None:
            held = released_with(self._known, key, traits, labels, notes or NO_LABELS)
            known = self._known.put(key, (held, self._ruling(pod)))
        return known[1]

    def _ruling(self, pod: Pod, protected_until: datetime | None = None) -> Ruling:
        subject = Subject(
            pod=pod,
            budgets=len(self._coverage.of(pod)),
            budgets_readable=self._coverage.readable(pod),
            protected_until=protected_until,
        )
        return rule_on(subject, self._terms)


class _Remembered:
    """The rulings under the coverage that was asked for last.

    Others would keep the budgets of earlier plans in memory, of which a tenant may write megabytes.
    """

    def __init__(self) -> None:
        self._known: tuple[Coverage, dict[Terms, _Rulings]] = Coverage(()), {}

    def under(self, terms: Terms, coverage: Coverage) -> _Rulings:
        """Return the rulings under these terms."""
        known, by_terms = self._known  # read once: other threads plan with other coverages
        if known is not coverage or (len(by_terms) >= TERMS_MAX and terms not in by_terms):
            by_terms = {}
            self._known = coverage, by_terms
        rulings = by_terms.get(terms)
        if rulings is None:
            rulings = by_terms[terms] = InternTable(RULINGS_MAX)
        return rulings


_REMEMBERED: Final = _Remembered()


def judge_of(terms: Terms, coverage: Coverage, at: datetime) -> Judge:
    """Return a judge with the rulings of earlier plans, as most pods were in the plan before."""
    return Judge(terms, coverage, at, _REMEMBERED.under(terms, coverage))
