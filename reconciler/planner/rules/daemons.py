"""Pods that start and end with their node: DaemonSets' and static ones."""

from reconciler.planner.rules.verdict import NO_OPINION, Ruling, Subject, Terms, Verdict


def judge(subject: Subject, terms: Terms) -> Ruling:  # noqa: ARG001 - every rule has one shape
    """Skip DaemonSet and mirror pods, whose eviction has no effect."""
    if subject.pod.daemon:
        return Ruling(verdict=Verdict.SKIP, code="daemonset")
    if subject.pod.mirror:
        return Ruling(verdict=Verdict.SKIP, code="mirror")
    return NO_OPINION
