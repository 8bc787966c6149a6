"""Pods that could not be decoded: nothing is known about what they forbid."""

from reconciler.planner.rules.verdict import NO_OPINION, Ruling, Subject, Terms, block


def judge(subject: Subject, terms: Terms) -> Ruling:  # noqa: ARG001 - every rule has one shape
    """Block pods whose spec could not be decoded."""
    return block("unreadable", "it cannot be read") if subject.pod.unreadable else NO_OPINION
