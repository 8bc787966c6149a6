"""The answers of explanations, as values."""

from dataclasses import dataclass
from typing import Literal

from reconciler.model.actions import AnyAction
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import NodeName, PodKey, Region
from reconciler.model.plan import FleetPlan, Placement
from reconciler.planner.disruption.node_disruption import Disruption

PodVerdict = Literal["running", "placed", "unplaceable", "ignored"]
NodeVerdict = Literal["kept", "held", "leaves", "used", "foreign"]
FleetVerdict = Literal["grows", "shrinks", "stays", "unavailable"]
Changes = tuple[str, ...]
"""Changes to make together, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetAnswer:
    """Whether one fleet would take a pod, and if not, why."""

    fleet: str
    region: Region
    code: str
    """An unplaceable code; `fits` if a new node would take the pod; `chosen` if it gets one."""
    detail: str
    ways: tuple[Changes, ...] = ()
    """Alternatives, the smallest first; each was tried. Empty if nothing tried would help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodExplanation:
    """Why a pod runs, will run, or cannot."""

    pod: PodKey
    verdict: PodVerdict
    because: str
    placement: Placement | None = None
    fleets: tuple[FleetAnswer, ...] = ()
    nodes: FrozenMap[str, int] = FrozenMap()  # noqa: RUF009 - an immutable value
    """Existing nodes that do not take it once the plan is carried out, counted by code."""
    change: Changes = ()
    """The smallest change that would place it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeExplanation:
    """Why a node stays or leaves."""

    node: NodeName
    verdict: NodeVerdict
    code: str
    because: str
    fleet: str = ""
    actions: tuple[AnyAction, ...] = ()
    """The plan's actions on it, in order."""
    pods: tuple[PodKey, ...] = ()
    """The pods that keep it."""
    disruption: Disruption | None = None
    """What is happening to it; None if nothing is."""
    drift: str = ""
    """What its fleet would launch differently, or why that is unknown; empty if nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetExplanation:
    """Why a fleet has the size that the plan gives it."""

    plan: FleetPlan
    """Its figures."""
    verdict: FleetVerdict
    because: str
    hourly_usd: float
    """The cost of its target."""
    pods: int
    """Pending pods that get a place on its new or launching nodes."""
    nodes: FrozenMap[str, int] = FrozenMap()  # noqa: RUF009 - an immutable value
    """Its nodes, counted by the code of why each stays or leaves."""
    refused: FrozenMap[str, int] = FrozenMap()  # noqa: RUF009 - an immutable value
    """Pods without a place anywhere, counted by why this fleet does not take them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanations:
    """The answers to everything that was asked, in that order."""

    pods: tuple[PodExplanation, ...] = ()
    nodes: tuple[NodeExplanation, ...] = ()
    fleets: tuple[FleetExplanation, ...] = ()
