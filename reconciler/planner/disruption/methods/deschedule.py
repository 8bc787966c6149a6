"""Method: the descheduler evicts pods that would be placed better elsewhere; it drains no node."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from reconciler.model.actions import EvictPod
from reconciler.model.cluster import Node
from reconciler.model.ids import NodeName, PodKey
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.descheduler_settings import (
    DeschedulerSettings,
    HighNodeUtilization,
    Profile,
)
from reconciler.planner.disruption.descheduler.evictor import Evictor
from reconciler.planner.disruption.descheduler.facts import Facts, find_replicas
from reconciler.planner.disruption.descheduler.places import Places
from reconciler.planner.disruption.descheduler.pod_blockers import PodBlockers
from reconciler.planner.disruption.descheduler.policies.high_node_utilization import (
    nodes_to_empty,
)
from reconciler.planner.disruption.descheduler.policy_functions import proposals_of
from reconciler.planner.disruption.disruption_context import DisruptionContext
from reconciler.planner.disruption.voluntary_run import VoluntaryRun
from reconciler.planner.view import ClusterView


def propose(run: VoluntaryRun) -> None:
    """Evict the pods that the policies of each profile propose, once per descheduling interval.

    Nodes that are being emptied keep their soft taint between two runs.
    """
    context, builder, view = run.context, run.context.builder, run.context.view
    settings = view.settings.descheduler
    if settings is None:
        return
    rests = rests_until(view, settings) is not None
    profiles = [each for each in settings.profiles if not rests or _emptying(each)]
    if not profiles:
        return
    nodes = tuple(_looked_at(run, settings))
    pods_on = {node.name: view.pods_on.get(node.name, ()) for node in nodes}
    replicas = () if rests else find_replicas(view, nodes)
    moved: dict[PodKey, NodeName] = {}
    staying = run.simulator.staying
    closed = {name for name, row in view.row_of.items() if not staying[row]}
    closed |= context.closed | context.idle | context.unneeded.keys() | context.timed_for_later
    prepared: list[tuple[PodBlockers, Facts, Profile]] = []
    for profile in profiles:
        blockers = PodBlockers(context, settings, profile.evictor)
        facts = Facts(
            view=view,
            sim=builder.sim,
            nodes=nodes,
            pods_on=pods_on,
            replicas=replicas,
            stays_for_good=blockers.stays_for_good,
            moved=moved,
        )
        _ask_to_stay_empty(context, facts, profile)
        prepared.append((blockers, facts, profile))
    if rests:
        return
    evictor = Evictor(context, moved, Places(builder, closed), settings)
    for blockers, facts, profile in prepared:
        evictor.run(blockers, (proposals_of(policy, facts) for policy in profile.policies))


def _emptying(profile: Profile) -> list[HighNodeUtilization]:
    """Return the profile's policies that empty nodes."""
    return [policy for policy in profile.policies if isinstance(policy, HighNodeUtilization)]


def _ask_to_stay_empty(context: DisruptionContext, facts: Facts, profile: Profile) -> None:
    """Request the soft taint for nodes that HighNodeUtilization empties.

    kube-scheduler prefers the emptiest nodes: without the taint the pods would return.
    """
    for policy in _emptying(profile):
        for node in nodes_to_empty(policy, facts):
            context.unneeded.setdefault(node.name, "deschedule")


def rests_until(view: ClusterView, settings: DeschedulerSettings) -> datetime | None:
    """Return when the next pods may be evicted; None if they may now.

    A last run in the future counts as now.
    """
    last = view.snapshot.cluster.last_descheduled_at
    if last is None:
        return None
    until = min(last, view.at) + timedelta(seconds=settings.interval_seconds)
    return until if until > view.at else None


def last_descheduled(builder: PlanBuilder) -> datetime | None:
    """Return when pods were last evicted: now if this plan evicts any.

    A soft taint alone is no eviction: the next plan begins to empty the node.
    """
    evictions = (action for action in builder.actions if isinstance(action, EvictPod))
    if any(action.policy == "deschedule" for action in evictions):
        return builder.view.at
    return builder.view.snapshot.cluster.last_descheduled_at


def _looked_at(run: VoluntaryRun, settings: DeschedulerSettings) -> Iterator[Node]:
    """Yield our Ready nodes that stay and match the policy's nodeSelector.

    Interrupted nodes are left to their own method from the first plan that knows of the
    interruption: otherwise their pods would be evicted twice.
    """
    view = run.context.view
    for name, node in view.nodes.items():
        if name not in view.inventory.fleet_of_node or not node.ready or node.unreadable:
            continue
        if name in view.inventory.interrupted:
            continue
        if settings.nodes is not None and not settings.nodes.matches(node.labels):
            continue
        if run.simulator.staying[view.row_of[name]]:
            yield node
