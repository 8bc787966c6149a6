"""A spot fleet, nodes that stand in for its nodes, and what spot return decides about them."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from reconciler.model.actions import (
    DRAINING_TAINT,
    FALLBACK_FROM,
    SPOT_RETURN,
    AnnotateNode,
    TaintNode,
)
from reconciler.model.cluster import Node, Pod
from reconciler.model.frozen import FrozenMap
from reconciler.model.plan import Plan
from reconciler.model.saved_state import SavedFleetState
from reconciler.model.text import rfc3339
from reconciler.planner.disruption_settings import DisruptionBudget, SpotReturn
from reconciler.planner.planner import plan
from reconciler.planner.settings import PlannerSettings
from tests.builders import (
    HOME,
    ago,
    make_cloud_of,
    make_fleet,
    make_fleet_settings,
    make_node,
    make_pod,
    make_settings,
    make_snapshot,
)

SPOT = make_fleet_settings(spot_fallback=True)
STEADY = make_fleet_settings("steady", spot=False, price="0.3")
HOUR = 3600.0


def stand_in(name: str, batch: float | None = None, **changed: Any) -> Node:
    """A node that stands in for one of the spot fleet, in a batch of so many seconds ago."""
    noted = {FALLBACK_FROM: SPOT.name}
    if batch is not None:
        noted[SPOT_RETURN] = rfc3339(ago(batch))
    changed.setdefault("created_at", ago(6 * HOUR))
    return make_node(name, STEADY, annotations=FrozenMap(noted), **changed)


def busy(node: Node, pods: int = 1, **changed: Any) -> list[Pod]:
    """Pods that fill it."""
    cpu = f"{3000 // pods}m"
    return [
        make_pod(f"on-{node.name}-{n}", node=node.name, cpu=cpu, **changed) for n in range(pods)
    ]


def settings_of(**changed: Any) -> PlannerSettings:
    """Spot return is on."""
    steady = replace(STEADY, **changed.pop("steady", {}))
    changed.setdefault("disruption_budgets", (DisruptionBudget(nodes=2),))
    changed.setdefault("spot_return", SpotReturn())
    return make_settings(SPOT, steady, **changed)


def planned(
    *nodes: Node,
    pods: list[Pod] | None = None,
    saved: SavedFleetState | None = None,
    target: int = 0,
    **changed: Any,
) -> Plan:
    """The plan with full nodes."""
    own = [n for n in nodes if n.labels["fleet"] == STEADY.name]
    spot = len(nodes) - len(own) + target
    settings = settings_of(**changed)
    fleets = make_fleet(SPOT, spot), make_fleet(STEADY, len(own))
    running = [pod for node in own for pod in busy(node)] if pods is None else pods
    return plan(
        make_snapshot(
            *nodes,
            *running,
            cloud=make_cloud_of(nodes, *fleets),
            fleet_states=(saved,) if saved else (),
        ),
        settings,
    )


def error(seconds_ago: float, **changed: Any) -> SavedFleetState:
    """The spot fleet after a capacity error."""
    at = ago(seconds_ago)
    return SavedFleetState(
        fleet=SPOT.name,
        region=HOME,
        last_error_at=at,
        unavailable_until=at + timedelta(minutes=5),
        failures=1,
        **changed,
    )


def marked(made: Plan) -> list[tuple[str, str | None]]:
    """Nodes that are put into a batch or taken out of one."""
    found = [a for a in made.actions if isinstance(a, AnnotateNode) and a.key == SPOT_RETURN]
    return [(a.node, a.value) for a in found]


def drained(made: Plan) -> list[tuple[str, str]]:
    """Nodes that are tainted, and with what."""
    found = [a for a in made.actions if isinstance(a, TaintNode)]
    return [(a.node, a.taint.value) for a in found if a.taint.key == DRAINING_TAINT]
