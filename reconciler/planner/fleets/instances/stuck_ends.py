"""How many instances that never became usable nodes may be ended, per cycle and per hour.

Nothing was ever seen to run on such an instance, and nothing in Kubernetes can object to its end:
no pod, no budget, no annotation. If the observation were wrong, all of them would be ended. So only
a few are ended at a time, however well the cluster is proven, and what exceeds the limit is
reported.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

from reconciler.model.actions import AnyAction, TerminateInstance
from reconciler.model.binding import Binding
from reconciler.model.ids import InstanceId, NodeName
from reconciler.model.saved_state import StuckEnd
from reconciler.planner.settings import StuckEndSettings

STUCK_CAP: Final = "stuck-cap"
"""Code of `held`: the limit is reached."""
HOUR = timedelta(hours=1)
CAUTIOUS = StuckEndSettings(per_cycle=1, per_hour=3)
"""The limit while no node proves the cluster now, or while most of the fleets' instances seem
stuck."""
SHARE_MAX = 0.3
FEW = 3
"""Up to this many may be stuck at once without a second look (as in planner/safety_stop.py)."""


class StuckEndLedger:
    """Decides which of the instances that never joined may be ended in this cycle.

    Args:
        recent: Those that were ended in the last hour.
        limits: What the config allows.
        at: The time of the plan.
    """

    def __init__(self, recent: Iterable[StuckEnd], limits: StuckEndSettings, at: datetime) -> None:
        self._ended = {stuck_end.instance for stuck_end in recent_ends(recent, at)}
        self._limits = limits
        self._taken = 0

    def take(self, instance: InstanceId) -> bool:
        """Count one more end if the limits allow it; return whether they do.

        One that was ended before in this hour and still exists counts once.
        """
        if self._taken >= self._limits.per_cycle:
            return False
        if instance not in self._ended and len(self._ended) >= self._limits.per_hour:
            return False
        self._taken += 1
        self._ended.add(instance)
        return True

    def kept_for_now(self, instances: Sequence[InstanceId]) -> Sequence[InstanceId]:
        """Return those that the limit of the hour keeps; `instances` are in order of their turn.

        Those that only wait for their turn in one of the next cycles are not included.
        """
        if self._limits.per_cycle == 0:
            return instances
        room = max(0, self._limits.per_hour - len(self._ended))
        return [instance for instance in instances if instance not in self._ended][room:]


def limits_for(
    binding: Binding, stuck: int, nodes: int, limits: StuckEndSettings
) -> StuckEndSettings:
    """Return the config's limits, or lower ones while the observation is doubtful.

    Args:
        binding: How well cluster and fleets are known to belong together.
        stuck: Instances that have no node: those whose node was never Ready show that the list of
            nodes is whole.
        nodes: Nodes of our fleets.
        limits: What the config allows.
    """
    many = stuck > FEW and stuck > SHARE_MAX * (nodes + stuck)
    if binding.verdict == "proven" and not many:
        return limits
    return StuckEndSettings(
        per_cycle=min(limits.per_cycle, CAUTIOUS.per_cycle),
        per_hour=min(limits.per_hour, CAUTIOUS.per_hour),
    )


def recent_ends(known: Iterable[StuckEnd], at: datetime) -> tuple[StuckEnd, ...]:
    """Return those of the last hour; a time in the future counts as now."""
    ends = (StuckEnd(instance=stuck_end.instance, at=min(stuck_end.at, at)) for stuck_end in known)
    return tuple(sorted(stuck_end for stuck_end in ends if at - stuck_end.at < HOUR))


def ends_after(
    known: Iterable[StuckEnd],
    actions: Iterable[AnyAction],
    stuck: Collection[NodeName],
    at: datetime,
) -> tuple[StuckEnd, ...]:
    """Return what must be remembered after a plan: the ends of the last hour and its own.

    Args:
        known: The ends of the last hour.
        actions: Those of the plan.
        stuck: Nodes that never took a pod.
        at: The time of the plan.
    """
    recent = {stuck_end.instance: stuck_end for stuck_end in recent_ends(known, at)}
    for action in actions:
        if not isinstance(action, TerminateInstance):
            continue
        never_ready = action.node in stuck and action.precondition == "not-ready"
        if action.node is None or never_ready:
            recent.setdefault(action.instance, StuckEnd(instance=action.instance, at=at))
    return tuple(sorted(recent.values()))
