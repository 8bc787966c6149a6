"""kube-system pods: without a budget nothing says how many may be missing."""

from reconciler.planner.rules.verdict import NO_OPINION, Ruling, Subject, Terms, block

KUBE_SYSTEM = "kube-system"


def judge(subject: Subject, terms: Terms) -> Ruling:
    """Block kube-system pods that no budget covers, unless `move_system_pods`."""
    lonely = subject.pod.key.namespace == KUBE_SYSTEM and subject.budgets == 0
    if lonely and not terms.move_system_pods:
        return block(
            "kube-system",
            "it is a kube-system pod without a disruption budget "
            "(one, or `move_system_pods`, would let it go)",
        )
    return NO_OPINION
