"""After the last fault: quiet within a bounded time, and in order once it is quiet."""

from collections.abc import Iterator

from reconciler.model.actions import DO_NOT_DISRUPT, DRAIN_STARTED
from reconciler.model.cluster import Node, Pod
from reconciler.model.ids import InstanceId, NodeName
from reconciler.model.plan import Plan
from reconciler.planner.settings import FleetSettings
from tests.builders import is_tainted
from tests.life.laws import Laws
from tests.life.oscillation import oscillation
from tests.life.stage import Stage

QUIET_SECONDS = 4200.0
"""Longer than any timer of these configs: the longest is the hour within which only so many
instances that never joined are ended (`stuck_ends.per_hour`)."""
BUSY_SLEEP_SECONDS = 30.0
QUIET_SLEEP_SECONDS = 300.0
CYCLES_EACH = 60
"""Bound on the cycles from the last fault to quiet, per node, pod and fleet, of which there are at
least four: a drain begun, failed, rested and begun again, for each."""


class Served:
    """Since when every pod is served that can be: what had been waiting while faults lasted, too.

    A pod that nothing could serve (a fleet at its maximum, of which a node is cordoned by hand) and
    that is served later is a change of demand. So are the pods of a node that is replaced, and of
    one that goes with an instance that EC2 took: it may be gone only minutes later.
    """

    def __init__(self, begun_at: float) -> None:
        self.since = begun_at
        self._unplaceable: int | None = None
        self._replaced_at = 0.0
        self._instances: dict[NodeName, InstanceId | None] = {}
        """Of the nodes that were there at the plan before."""

    def note(self, stage: Stage, laws: Laws, plan: Plan) -> None:
        """Look at one plan."""
        if laws.replaced_at > self._replaced_at:
            self._replaced_at, self._unplaceable = laws.replaced_at, None
        if self._lost_a_node(stage, laws):
            self._unplaceable = None
        waiting = sum(pod.node_name is None for pod in stage.world.pods())
        unplaceable = len(plan.unplaceable)
        if waiting <= unplaceable and (
            self._unplaceable is None or unplaceable < self._unplaceable
        ):
            self.since, self._unplaceable = stage.process.now, unplaceable

    def _lost_a_node(self, stage: Stage, laws: Laws) -> bool:
        """Whether a node is gone since the last plan whose instance the program did not end."""
        ended = {instance for _, instance in laws.endings}
        before = self._instances
        self._instances = {node.name: node.instance_id for node in stage.world.nodes()}
        gone = before.keys() - self._instances.keys()
        return any(before[name] not in ended for name in gone)


def settle(stage: Stage, laws: Laws) -> Iterator[str]:
    """Let everything come to rest; what is wrong then."""
    process = stage.process
    begun_at, cycles = process.now, process.cycles
    process.active_at = process.now
    served = Served(begun_at)
    process.plan_hooks.append(lambda _snapshot, plan: served.note(stage, laws, plan))
    process.sleep_seconds = lambda: (
        BUSY_SLEEP_SECONDS if process.now - process.active_at < 120 else QUIET_SLEEP_SECONDS
    )
    things = len(stage.world.nodes()) + len(stage.world.pods()) + len(stage.fleets)
    limit = CYCLES_EACH * things
    while process.now - process.active_at < QUIET_SECONDS:
        process.run_for(QUIET_SLEEP_SECONDS)
        if process.cycles - cycles > limit:
            report = process.reports[-1]
            last = [str(a) for a in report.plan.actions][:3] if report.plan else [report.error]
            yield f"not settled after {process.cycles - cycles} cycles; it still does {last}"
            return
    process.plan_hooks.pop()
    yield from oscillation(stage, laws, max(served.since, laws.replaced_at))
    yield from disorder(stage, laws)


def disorder(stage: Stage, laws: Laws) -> Iterator[str]:
    """What is not as it should be once everything has come to rest."""
    yield from _leftovers(stage)
    yield from _unbound(stage, laws)
    yield from _idle(stage, laws)


def _leftovers(stage: Stage) -> Iterator[str]:
    """Taints, timers, orphans, dead names, targets that EC2 does not serve."""
    world = stage.world
    fleets = {f.name: f for f in stage.process.settings.fleets()}
    ours = {fleet_id: fleets[name] for (name, _), fleet_id in stage.fleets.items()}
    for node in world.nodes():
        if node.instance_id is None:
            continue
        instance = world.fleets.instances.get(node.instance_id)
        if is_tainted(node):
            yield f"{node.name} still carries our taint"
        elif DRAIN_STARTED in node.annotations:
            yield f"{node.name} still says that its drain has started"
        if (instance is None or instance.gone) and DO_NOT_DISRUPT not in node.annotations:
            yield f"{node.name} has no instance any more"
    joined = {node.instance_id for node in world.nodes()}
    for instance in world.fleets.instances.values():
        if instance.fleet_id in ours and not instance.gone and instance.id not in joined:
            yield f"{instance.id} never became a node"
    for fleet_id, fleet in ours.items():
        record = world.fleets.records[fleet_id]
        members = len(world.fleets.members(record))
        capped = fleet.max_capacity is not None and record.target >= fleet.max_capacity
        if record.target != members and not (members > record.target and capped):
            yield f"{fleet.name} aims at {record.target} and has {members}"


def _unbound(stage: Stage, laws: Laws) -> Iterator[str]:
    """Pods that wait although some fleet could serve them."""
    for pod in stage.world.pods():
        waits = pod.node_name is None and not pod.deleting and not pod.finished
        if waits and not pod.daemon:
            for fleet in stage.process.settings.fleets():
                if _serves(stage, fleet, pod):
                    yield f"{pod.key} waits although {fleet.name} could serve it"
                    break


def _serves(stage: Stage, fleet: FleetSettings, pod: Pod) -> bool:
    """Whether one more node of the fleet would do, its daemons on it."""
    selector = pod.spec.node_selector
    if any(fleet.labels.get(key) != value for key, value in selector.items()):
        return False
    daemons = [d.spec.requests for d in stage.world.objects.daemon_sets]
    offered = fleet.options[0].resources
    for key, wanted in pod.spec.requests.items():
        if wanted > offered.get(key, 0) - sum(d.get(key, 0) for d in daemons):
            return False
    target = stage.world.target(stage.fleets[fleet.name, stage.process.settings.home_region])
    return fleet.max_capacity is None or target < fleet.max_capacity


def _idle(stage: Stage, laws: Laws) -> Iterator[str]:
    """Empty nodes that nothing forbids to end, beyond minimum, spares and headroom."""
    kept = {h.sector: h.nodes for h in stage.process.settings.headroom}
    for fleet in stage.process.settings.fleets():
        for place, fleet_id in stage.fleets.items():
            if place[0] != fleet.name:
                continue
            home = place[1] == stage.process.settings.home_region
            least = fleet.min_capacity if home else 0
            target = stage.world.target(fleet_id)
            nodes = list(_nodes_of(stage, fleet_id))
            empty = [n for n in nodes if _is_idle(stage, laws, n)]
            usable = target - sum(not n.ready for n in nodes)  # the minimum is of usable nodes
            free = kept.get(fleet.sector, 0)  # each piece of headroom keeps one node at most
            kept[fleet.sector] = max(0, free - len(empty))
            if len(empty) > free and usable > least:
                what = f"{target} nodes, minimum {least}"
                yield f"{empty[0].name} of {fleet.name} stays empty, {what}"


def _nodes_of(stage: Stage, fleet_id: str) -> Iterator[Node]:
    for node in stage.world.nodes():
        instance = stage.world.fleets.instances.get(node.instance_id) if node.instance_id else None
        if instance is not None and instance.fleet_id == fleet_id:
            yield node


def _is_idle(stage: Stage, laws: Laws, node: Node) -> bool:
    guarded = DO_NOT_DISRUPT in node.annotations
    guarded |= node.instance_id in stage.world.fleets.termination_protected
    return node.ready and not guarded and not laws.counted_on(node.name) and not laws.guards(node)
