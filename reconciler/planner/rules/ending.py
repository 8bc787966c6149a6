"""Pods that have ended or are ending."""

from datetime import datetime, timedelta
from typing import Final

from reconciler.model.cluster import Pod
from reconciler.model.counted_pods import counts
from reconciler.model.text import rfc3339
from reconciler.planner.rules.verdict import NO_OPINION, Ruling, Subject, Terms, Verdict, block

_CLOCKS_DIFFER: Final = timedelta(minutes=2)
"""The API server dates the end of a pod's grace period, and its clock may be ahead of ours."""


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


def ends_late(pod: Pod, terms: Terms, at: datetime) -> Ruling | None:
    """Return the ruling on a pod that ends only after a drain would be given up; None for others.

    Otherwise drains of its node would fail one after the other, and each would move the other pods.
    On an overdue node it is deleted once more, with the grace period of its own spec: whoever
    deletes a pod may state any other.
    """
    if not pod.deleting or pod.deletion_at is None or not counts(pod):
        return None
    limit_seconds = terms.graceful_termination_max_seconds
    if terms.overdue:
        limit_seconds = pod.spec.termination_grace_seconds
    if pod.deletion_at - at <= timedelta(seconds=limit_seconds) + _CLOCKS_DIFFER:
        return None
    if terms.overdue:
        return Ruling(verdict=Verdict.OK)
    why = f"it is being deleted, and may take until {rfc3339(pod.deletion_at)}"
    return block("long-grace", why, pod.deletion_at)
