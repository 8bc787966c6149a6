"""Pods whose work must not be lost, whether or not they count: they keep even an empty node.

Balloon pods and DaemonSets' pods end with their node. A protected pod does not, nor does a Job at
work, nor an unreadable pod.
"""

from collections.abc import Iterable

from reconciler.model.cluster import Pod
from reconciler.planner.rules.ruling import Judge
from reconciler.planner.rules.verdict import Ruling

_CODES = frozenset({"do-not-disrupt", "started-job", "unreadable"})


def first_irreplaceable(judge: Judge, pods: Iterable[Pod]) -> tuple[Pod, Ruling] | None:
    """Return the first such pod and the ruling with the reason; None if there is none."""
    return next(((p, r) for p, r in judge.rulings(pods) if r.code in _CODES), None)
