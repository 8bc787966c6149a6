"""Entry point: takes questions about pods, nodes and fleets, returns explanations."""

from collections.abc import Sequence

from reconciler.model.cluster import NO_RESOURCES, Node, Pod, PodSpec
from reconciler.model.errors import UsageError
from reconciler.model.ids import FleetKey, PodKey
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from reconciler.model.text import nearest_name
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.explain.answers import Explanations
from reconciler.planner.explain.fleets import explain_fleet
from reconciler.planner.explain.nodes import explain_node
from reconciler.planner.explain.pods import explain_pods, question, variants
from reconciler.planner.explain.system_reserve_repairs import SystemReserveRepairs
from reconciler.planner.plan_opening import open_plan
from reconciler.planner.planner import decide
from reconciler.planner.planning_failure import left_out_of
from reconciler.planner.settings import PlannerSettings

_FLEETS_SHOWN = 10
"""How many fleet names an answer about an unknown one lists."""


def explain(
    snapshot: Snapshot,
    settings: PlannerSettings,
    made: Plan,
    *,
    pods: Sequence[str] = (),
    nodes: Sequence[str] = (),
    fleets: Sequence[str] = (),
) -> Explanations:
    """Explain what a plan does about some pods, nodes and fleets.

    Args:
        snapshot: What the plan was made from.
        settings: The settings of the plan.
        made: The plan.
        pods: `namespace/name` each.
        nodes: Node names.
        fleets: Names of fleets; one that is in several regions is explained in each.

    Raises:
        UsageError: The snapshot has no such pod or node, or the config no such fleet.
    """
    asked_pods = [_pod(snapshot, name) for name in pods]
    asked_nodes = [_node(snapshot, name) for name in nodes]
    left_out = left_out_of(made)
    out = left_out.namespaces
    looked_at = [pod for pod in asked_pods if pod.node_name or pod.key.namespace not in out]
    opened = open_plan(snapshot, settings, looked_at, out).view
    reserves = SystemReserveRepairs(opened)
    questions = [question(opened, pod, reserves) for pod in looked_at]
    builder = decide(snapshot, settings, variants(questions), left_out)
    keys = [key for name in fleets for key in _fleets(builder, name)]
    return Explanations(
        pods=tuple(explain_pods(builder, made, asked_pods, questions)),
        nodes=tuple(explain_node(builder, made, node) for node in asked_nodes),
        fleets=tuple(explain_fleet(builder, made, key) for key in keys),
    )


def _pod(snapshot: Snapshot, name: str) -> Pod:
    """Return the pod of this name; of an old one and its successor the pending one."""
    pods = [pod for pod in snapshot.cluster.pods if str(pod.key) == name]
    if pods:
        return min(pods, key=lambda pod: (pod.node_name is not None, pod.key))
    namespace, _, own = name.partition("/")
    for each in snapshot.cluster.ignored:
        if (each.kind, each.namespace, each.name) == ("Pod", namespace, own):
            key = PodKey(namespace=namespace, name=own)
            return Pod(key=key, spec=PodSpec(requests=NO_RESOURCES), unreadable=True)
    near = nearest_name(name, [str(pod.key) for pod in snapshot.cluster.pods])
    missing = "look with kubectl get pods -A" if own else "give NAMESPACE/NAME"
    hint = f"did you mean {near}?" if near else missing
    raise UsageError(f"pod {name}", "there is no such pod", hint)


def _node(snapshot: Snapshot, name: str) -> Node:
    found = next((node for node in snapshot.cluster.nodes if node.name == name), None)
    if found is not None:
        return found
    near = nearest_name(name, [node.name for node in snapshot.cluster.nodes])
    hint = f"did you mean {near}?" if near else "look with kubectl get nodes"
    raise UsageError(f"node {name}", "there is no such node", hint)


def _fleets(builder: PlanBuilder, name: str) -> list[FleetKey]:
    """Return the fleet in each of its regions, the preferred one first."""
    found = [s for s in builder.view.inventory.fleets if s.key.name == name]
    if found:
        return [s.key for s in sorted(found, key=lambda s: s.tier)]
    known = sorted({key.name for key in builder.view.statuses})
    near = nearest_name(name, known)
    listed = ", ".join(known[:_FLEETS_SHOWN]) or "none"
    hint = f"did you mean {near}?" if near else f"fleets of the config: {listed}"
    raise UsageError(f"fleet {name}", "the config has no such fleet", hint)
