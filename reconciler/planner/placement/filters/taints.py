"""TaintToleration: every NoSchedule and NoExecute taint must be tolerated."""

from collections.abc import Iterable

from reconciler.model.cluster import Taint, Toleration


def untolerated(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> Taint | None:
    """Return the first hard taint that nothing tolerates."""
    known = tuple(tolerations)
    for taint in taints:
        if taint.effect != "PreferNoSchedule" and not any(t.tolerates(taint) for t in known):
            return taint
    return None
