"""Pods without a controller: nothing would recreate them elsewhere."""

from reconciler.planner.rules.verdict import NO_OPINION, Ruling, Subject, Terms, block


def judge(subject: Subject, terms: Terms) -> Ruling:
    """Block bare pods unless `move_bare_pods` accepts that they are lost."""
    if subject.pod.owner is None and not terms.move_bare_pods:
        return block(
            "no-controller",
            "bare pod: nothing would recreate it (`move_bare_pods` would let it go)",
        )
    return NO_OPINION
