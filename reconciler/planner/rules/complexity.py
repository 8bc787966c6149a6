"""Pods with more constraints than are planned for: an omitted one may be what keeps them here."""

from reconciler.planner.rules.verdict import NO_OPINION, Ruling, Subject, Terms, block


def judge(subject: Subject, terms: Terms) -> Ruling:  # noqa: ARG001 - every rule has one shape
    """Block pods of whose constraints only a part is known."""
    why = subject.pod.spec.too_complex
    return block("too-complex", f"it {why}") if why else NO_OPINION
