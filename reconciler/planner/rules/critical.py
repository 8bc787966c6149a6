"""Pods with a system-critical priority: policies that only tidy up leave them alone."""

from reconciler.planner.rules.verdict import NO_OPINION, Ruling, Subject, Terms, block

CRITICAL_PRIORITY = 2_000_000_000
"""Source: system-cluster-critical, scheduling.k8s.io; system-node-critical is 1000 above."""


def judge(subject: Subject, terms: Terms) -> Ruling:
    """Block critical pods if the policy asks for it."""
    if terms.critical_pods_stay and subject.pod.spec.priority >= CRITICAL_PRIORITY:
        return block("critical", f"its priority is {subject.pod.spec.priority}")
    return NO_OPINION
