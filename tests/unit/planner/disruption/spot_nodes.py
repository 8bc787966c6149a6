"""An on-demand and a spot fleet with the spot rescheduler on, and what it decides."""

from typing import Any

from reconciler.model.actions import (
    DRAINING_TAINT,
    TaintNode,
)
from reconciler.model.cluster import Node, Pod, Taint
from reconciler.model.plan import Plan
from reconciler.planner.disruption_settings import NodeLabel, SpotRescheduler
from reconciler.planner.settings import PlannerSettings
from tests.builders import (
    make_node,
    make_settings,
)
from tests.unit.planner.disruption.scale_in.scene import (
    make_scene_fleet,
    planned,
)

RULES = SpotRescheduler(
    on_demand=NodeLabel(key="lifecycle", value="OnDemand"),
    spot=NodeLabel(key="lifecycle", value="Ec2Spot"),
)
PREFERS_SPOT = Taint(key="lifecycle", value="OnDemand", effect="PreferNoSchedule")
RESCHEDULED = Taint(key=DRAINING_TAINT, value="spot-reschedule", effect="NoSchedule")
SPOT = make_scene_fleet(name="spot", utilization_threshold=0.0)
ON_DEMAND = make_scene_fleet(
    name="on-demand", spot=False, taints=(PREFERS_SPOT,), utilization_threshold=0.0
)


def settings(**changed: Any) -> PlannerSettings:
    """Settings of both fleets with the rescheduler on."""
    fleets = changed.pop("fleets", (ON_DEMAND, SPOT))
    return make_settings(*fleets, spot_rescheduler=changed.pop("rules", RULES), **changed)


def nodes(on_demand: str = "a", spot: str = "s") -> list[Node]:
    """One node per letter."""
    return [
        *(make_node(name, ON_DEMAND) for name in on_demand),
        *(make_node(name, SPOT) for name in spot),
    ]


def made_of(*objects: Node | Pod, **changed: Any) -> Plan:
    """The plan; `rules` and `fleets` are those of the settings."""
    own = {k: changed.pop(k) for k in ("rules", "fleets") if k in changed}
    return planned(settings(**own), *objects, **changed)


def stays(made: Plan) -> dict[str, str]:
    """Code of each on-demand node that keeps its pods."""
    return {str(each.node): each.code for each in made.kept}


def begun(made: Plan) -> list[str]:
    """The nodes whose drain the plan begins for spot nodes."""
    return [
        str(action.node)
        for action in made.actions
        if isinstance(action, TaintNode) and action.taint == RESCHEDULED
    ]
