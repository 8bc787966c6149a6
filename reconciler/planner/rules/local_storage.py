"""Pods that keep data on their node."""

from reconciler.planner.rules.verdict import NO_OPINION, Ruling, Subject, Terms, block


def judge(subject: Subject, terms: Terms) -> Ruling:
    """Block pods with an emptyDir on disk or a hostPath, unless `move_local_storage`."""
    if subject.pod.spec.local_storage and not terms.move_local_storage:
        return block(
            "local-storage",
            "it keeps data on the node in an emptyDir or hostPath "
            "(`move_local_storage` would let it go)",
        )
    return NO_OPINION
