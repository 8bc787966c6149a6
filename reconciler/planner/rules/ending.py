"""Pods that have ended or are ending."""

from reconciler.planner.rules.verdict import NO_OPINION, Ruling, Subject, Terms, Verdict


def finished(subject: Subject, terms: Terms) -> Ruling:  # noqa: ARG001 - every rule has one shape
    """Skip pods that succeeded or failed."""
    if subject.pod.finished:
        return Ruling(verdict=Verdict.SKIP, code="finished")
    return NO_OPINION


def deleting(subject: Subject, terms: Terms) -> Ruling:  # noqa: ARG001 - every rule has one shape
    """Wait for pods that are being deleted already, by us or others; delete none twice."""
    if subject.pod.deleting:
        return Ruling(verdict=Verdict.WAIT, code="deleting", reason="it is being deleted")
    return NO_OPINION
