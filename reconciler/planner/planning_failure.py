"""What a plan leaves out because planning fails with it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.model.plan import Plan
from reconciler.planner.builder import PlanBuilder

CODE = "planning-failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """What a plan leaves out; usually nothing."""

    namespaces: Mapping[str, str] = field(default_factory=dict)
    """Namespaces whose pending pods are not planned for, and why."""
    removals: str = ""
    """Why no node is drained or ended, and no pod moved; empty if they are as usual."""


NOTHING = LeftOut()


def left_out_of(made: Plan) -> LeftOut:
    """Return what a plan has left out."""
    return LeftOut(
        namespaces={
            pod.pod.namespace: pod.reasons[0].detail
            for pod in made.unplaceable
            if pod.reasons and pod.reasons[0].code == CODE
        },
        removals=made.no_removals_because,
    )


def hold_for_failure(builder: PlanBuilder, because: str) -> None:
    """Note on each node of the fleets why it stays."""
    for name in sorted(builder.view.inventory.fleet_of_node):
        builder.block(builder.view.nodes[name], CODE, because)
