"""Pods that may take longer to end than a drain may take."""

from reconciler.planner.rules.verdict import NO_OPINION, Ruling, Subject, Terms, block


def judge(subject: Subject, terms: Terms) -> Ruling:
    """Block pods whose own grace period is longer than `max_graceful_termination`."""
    asked = subject.pod.spec.termination_grace_seconds
    if asked > terms.graceful_termination_max_seconds:
        limit = f"{terms.graceful_termination_max_seconds:g}"
        return block(
            "long-grace", f"it may take {asked} s to end, max_graceful_termination is {limit} s"
        )
    return NO_OPINION
