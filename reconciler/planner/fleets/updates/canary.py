"""The canary of a version: how long its first new node was watched, and what it shows.

A version is proven when a new node took pods, and was watched, for `canary_time` after the first
batch was gone, and shows no failure. What its pods do before that shows whether the version works;
a node without pods shows nothing.

Time counts as watched only around plans that could judge: not while this program was away, EC2 did
not return the version, the region had an outage, or the clocks differed. The Lease keeps since when
it is watched (`SavedFleetState.canary_since`), so that pods may be short-lived, and that it is
proven, which then holds whatever its nodes do later.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Final

from reconciler.model.cluster import Node, Pod, Taint
from reconciler.model.counted_pods import counts
from reconciler.model.fleet import Instance
from reconciler.model.ids import NodeName, Region
from reconciler.model.saved_state import SavedFleetState
from reconciler.model.snapshot import Snapshot
from reconciler.model.text import duration
from reconciler.planner.clocks import decided_at, is_skewed
from reconciler.planner.fleets.fleet_nodes import FleetNodes
from reconciler.planner.fleets.instances.stuck import StuckInstance
from reconciler.planner.fleets.updates.crash_loops import (
    crashing_pods,
    is_crashing,
    restarted_pods,
    restarts_of,
)
from reconciler.planner.nodes.drain_taints import is_draining
from reconciler.planner.nodes.outages import find_outages
from reconciler.planner.nodes.starting import (
    came_before,
    startup_taints,
    takes_pods,
    unready_since,
)
from reconciler.planner.settings import PlannerSettings

LOOK_COUNTS: Final = timedelta(minutes=2)
"""How much time before a plan counts as watched by it, at most."""
_SAVED_AFTER: Final = timedelta(minutes=1)
"""How old the saved last look may be: less than the above, so that the Lease need not be written
in each cycle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """What is known about the version from which a fleet launches."""

    version: str = ""
    """As `SavedFleetState.canary_version`: empty while nothing can be noted."""
    since: datetime | None = None
    """As `SavedFleetState.canary_since`."""
    seen_at: datetime | None = None
    """As `SavedFleetState.canary_seen_at`."""
    proven: bool = False
    """As `SavedFleetState.canary_proven`."""
    left: timedelta | None = None
    """How much longer it is to be watched; None while its watch has not begun."""
    failure: str = ""
    """What shows that its nodes do not work, in words; empty if nothing does."""
    judged: bool = True
    """Whether it could be judged now: not while its region has an outage, or the clocks differ."""


def stays(node: Node, noticed: Collection[NodeName], settings: PlannerSettings) -> bool:
    """Return whether the node takes pods, and is neither cordoned nor leaving.

    Args:
        node: The node.
        noticed: Nodes that EC2 takes back, or recommends to replace, and nodes that are set aside.
        settings: Which taints are start-up taints.
    """
    leaving = node.unschedulable or is_draining(node) or node.name in noticed
    return takes_pods(node, settings) and not leaving


class Canaries:
    """Watches the first new nodes of all fleets; pods are read only if that decides something."""

    def __init__(
        self,
        fleets: Iterable[FleetNodes],
        instances: Mapping[NodeName, Instance],
        stuck: Sequence[StuckInstance],
        noticed: Collection[NodeName],
        doubted: Collection[NodeName],
        snapshot: Snapshot,
        settings: PlannerSettings,
    ) -> None:
        """Prepare the watch.

        Args:
            fleets: All fleets.
            instances: Instances by node.
            stuck: Instances that never joined, if they are to be believed.
            noticed: Nodes that EC2 takes back, or recommends to replace, and those set aside.
            doubted: Nodes of versions that are not proven.
            snapshot: All nodes, pods, and the clocks.
            settings: The config, in which rolling updates are switched on.
        """
        assert settings.rolling_update is not None
        self._fleets, self._instances = tuple(fleets), instances
        self._stuck, self._noticed, self._doubted = stuck, noticed, doubted
        self._nodes, self._pods = snapshot.cluster.nodes, snapshot.cluster.pods
        self._skewed = is_skewed(snapshot)
        self.now = decided_at(snapshot, snapshot.cluster.nodes)
        self._canary_time = timedelta(seconds=settings.rolling_update.canary_seconds)
        self._settings = settings

    def judge(
        self,
        fleet: FleetNodes,
        old: Collection[NodeName],
        new: Sequence[Node],
        saved: SavedFleetState | None,
        *,
        in_batch: bool,
    ) -> Canary:
        """Return what is known about a fleet's version.

        While its region has an outage, or the clocks differ, nothing new is learned.

        Args:
            fleet: The fleet; EC2 returns its version.
            old: Its drifted nodes.
            new: Its nodes of the version.
            saved: What the Lease has about it.
            in_batch: Whether a batch of the version is under way.
        """
        assert fleet.live is not None
        version = fleet.live.launch_template_version
        known = saved if saved is not None and saved.canary_version == version else None
        if known is not None and known.canary_proven:
            return Canary(version=version, since=known.canary_since, proven=True)
        if self._skewed or fleet.key.region in self._outages:
            return self._unjudged(known)
        # A person has let a halted version go on: its failures no longer count.
        lifted = saved is not None and saved.resumed_version == version
        staying = [node for node in new if stays(node, self._noticed, self._settings)]
        shown = min(filter(None, map(self._pods_since, staying)), default=None)
        since = shown if known is None else known.canary_since
        seen_at = None if known is None else known.canary_seen_at
        if since is not None and seen_at is None and self.now - since >= self._canary_time:
            # Without a last look only the nodes show what happened: the Lease was lost, or is of a
            # program that noted none.
            failure = "" if lifted else self._failure(fleet, old, new, only_now=True)
            return Canary(version=version, since=since, proven=not failure, failure=failure)
        if staying and since is not None and seen_at is not None:
            since, seen_at = self._watched_on(since, seen_at)
        else:
            since = seen_at = self.now if shown is not None and not in_batch else None
        failure = "" if lifted else self._failure(fleet, old, new)
        return self._judged(version, since, seen_at, failure)

    def _judged(
        self, version: str, since: datetime | None, seen_at: datetime | None, failure: str
    ) -> Canary:
        """Return the canary: proven once it was watched for `canary_time` and shows no failure."""
        left = None if since is None else since + self._canary_time - self.now
        if left is not None and left <= timedelta(0) and not failure:
            return Canary(version=version, since=since, proven=True)
        return Canary(version=version, since=since, seen_at=seen_at, left=left, failure=failure)

    def _watched_on(self, since: datetime, seen_at: datetime) -> tuple[datetime, datetime]:
        """Return start and last saved observation of the watch after this plan's observation.

        Time that no observation covers does not count: the start moves by it.
        """
        unwatched = self.now - seen_at - LOOK_COUNTS
        since = min(since + max(unwatched, timedelta(0)), self.now)
        return since, self.now if abs(self.now - seen_at) >= _SAVED_AFTER else seen_at

    def _unjudged(self, known: SavedFleetState | None) -> Canary:
        """Return what the Lease has about a version that is not proven; an empty one if nothing."""
        if known is None:
            return Canary(judged=False)
        since, seen_at = known.canary_since, known.canary_seen_at
        left = None
        if since is not None:
            left = max(self._canary_time - ((seen_at or since) - since), timedelta(0))
        version = known.canary_version
        return Canary(version=version, since=since, seen_at=seen_at, left=left, judged=False)

    def _pods_since(self, node: Node) -> datetime | None:
        """Return since when the first of the node's pods is there; None without any.

        If that is not known, since the node is Ready.
        """
        pods = self._pods_on.get(node.name, ())
        bound = [p.scheduled_at or p.started_at or node.ready_changed_at for p in pods if counts(p)]
        return min(filter(None, bound), default=None)

    @cached_property
    def _pods_on(self) -> Mapping[NodeName, Sequence[Pod]]:
        found: dict[NodeName, list[Pod]] = {}
        for pod in self._pods:
            if pod.node_name is not None:
                found.setdefault(pod.node_name, []).append(pod)
        return found

    @cached_property
    def _restarted(self) -> Sequence[Pod]:
        return restarted_pods(self._pods)

    @cached_property
    def _outages(self) -> Mapping[Region, str]:
        ours = [(fleet.key.region, node) for fleet in self._fleets for node in fleet.nodes]
        names = {node.name for _, node in ours}
        others = (node for node in self._nodes if node.name not in names)
        stuck = (
            stuck_instance.node.name
            for stuck_instance in self._stuck
            if stuck_instance.node is not None
        )
        doubted = frozenset(self._doubted).union(stuck)
        return find_outages(ours, self._instances, self.now, self._settings, doubted, others)

    def _failure(
        self,
        fleet: FleetNodes,
        old: Collection[NodeName],
        new: Sequence[Node],
        *,
        only_now: bool = False,
    ) -> str:
        """Return what shows that nodes of the new version do not work; empty if nothing does.

        Args:
            fleet: The fleet.
            old: Its drifted nodes.
            new: Its nodes of the version.
            only_now: Whether only restarts of pods in a crash loop now count: others may be days
                old.
        """
        crashing = self._crashing(old, new, only_now=only_now)
        return self._never_joined(fleet) or crashing or self._not_ready(new)

    def _never_joined(self, fleet: FleetNodes) -> str:
        assert fleet.live is not None
        version = fleet.live.launch_template_version
        for stuck_instance in self._stuck:
            if (
                stuck_instance.key != fleet.key
                or stuck_instance.instance.launch_template_version != version
            ):
                continue
            if stuck_instance.instance.gone:
                return f"instance {stuck_instance.why}"
            if stuck_instance.node is None:
                limit = duration(timedelta(seconds=self._settings.instance_init_seconds))
                return f"instance {stuck_instance.instance.id} never became a node within {limit}"
        return ""

    def _crashing(self, old: Collection[NodeName], new: Sequence[Node], *, only_now: bool) -> str:
        if not new:
            return ""
        restarted = self._restarted
        if only_now:
            restarted = [pod for pod in restarted if is_crashing(pod, self.now)]
        crashing = crashing_pods(restarted, old, self.now)
        for node in new:
            pod = crashing.get(node.name)
            if pod is not None:
                return f"pod {pod.key} on {node.name} was restarted {restarts_of(pod)} times"
        return ""

    def _not_ready(self, new: Sequence[Node]) -> str:
        """Return which node has not taken pods for `instance_init_time` since it last could.

        Nodes that are set aside or being ended say nothing: somebody may have stopped their kubelet
        to look at them.
        """
        limit = timedelta(seconds=self._settings.instance_init_seconds)
        for node in new:
            instance = self._instances.get(node.name)
            since = unready_since(node, instance)
            if instance is not None and not instance.counts:
                continue
            if since is None or takes_pods(node, self._settings) or self.now - since < limit:
                continue
            spent = duration(self.now - since)
            if not node.ready:
                return f"node {node.name} has not been Ready for {spent}"
            if (taint := self._taint_since_ready(node)) is not None:
                return f"node {node.name} has had the taint {taint.key} for {spent}"
        return ""

    def _taint_since_ready(self, node: Node) -> Taint | None:
        """Return a start-up taint that a node has had since it is Ready, as far as its pods show.

        Agents add theirs again while they restart, and Kubernetes does not say when.
        """
        pods = self._pods_on.get(node.name, ())
        for taint in startup_taints(node, self._settings):
            if not any(came_before(pod, taint) for pod in pods):
                return taint
        return None
