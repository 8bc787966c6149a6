"""TaintToleration: every NoSchedule and NoExecute taint must be tolerated."""

from collections.abc import Iterable

from reconciler.model.cluster import Taint, Toleration


def untolerated(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> Taint | None:
    """Return the first NoSchedule or NoExecute taint that is not tolerated; None if all are."""
    known = tuple(tolerations)
    for taint in taints:
        if taint.effect != "PreferNoSchedule" and not any(t.tolerates(taint) for t in known):
            return taint
    return None
