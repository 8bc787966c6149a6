"""What explanations say, as values."""

from dataclasses import dataclass
from typing import Literal

from reconciler.model.actions import AnyAction
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import NodeName, PodKey, Region
from reconciler.model.plan import FleetPlan, Placement
from reconciler.planner.disruption.state import Disruption

PodVerdict = Literal["running", "placed", "unplaceable", "ignored"]
NodeVerdict = Literal["kept", "held", "leaves", "used", "foreign"]
FleetVerdict = Literal["grows", "shrinks", "stays", "unavailable"]
Changes = tuple[str, ...]
"""Things to change together, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetAnswer:
    """Says whether one fleet would take a pod, and why not."""

    fleet: str
    region: Region
    code: str
    """An unplaceable code; `fits` when a new node would take the pod; `chosen` when it gets one."""
    detail: str
    ways: tuple[Changes, ...] = ()
    """Alternatives, the smallest first; each was tried. None when nothing tried would do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodExplanation:
    """Says why a pod runs, will run, or cannot."""

    pod: PodKey
    verdict: PodVerdict
    because: str
    placement: Placement | None = None
    fleets: tuple[FleetAnswer, ...] = ()
    nodes: FrozenMap[str, int] = FrozenMap()  # noqa: RUF009 - an immutable value
    """Existing nodes that do not take it, counted by code, once the plan is carried out."""
    change: Changes = ()
    """The smallest change that would place it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeExplanation:
    """Says why a node stays or goes."""

    node: NodeName
    verdict: NodeVerdict
    code: str
    because: str
    fleet: str = ""
    actions: tuple[AnyAction, ...] = ()
    """What the plan does to it, in order."""
    pods: tuple[PodKey, ...] = ()
    """Those that keep it."""
    disruption: Disruption | None = None
    """What is happening to it; None when nothing is."""
    drift: str = ""
    """What of it its fleet would launch otherwise, or why that is unknown; empty: nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetExplanation:
    """Says why a fleet has the size that the plan gives it."""

    plan: FleetPlan
    """Its figures."""
    verdict: FleetVerdict
    because: str
    hourly_usd: float
    """What its target costs."""
    pods: int
    """Pods that wait and get a place on its new or launching nodes."""
    nodes: FrozenMap[str, int] = FrozenMap()  # noqa: RUF009 - an immutable value
    """Its nodes, counted by the code of why each stays or goes."""
    refused: FrozenMap[str, int] = FrozenMap()  # noqa: RUF009 - an immutable value
    """Pods that find no place anywhere, counted by why this fleet takes them not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanations:
    """Holds the answers to everything that was asked, in that order."""

    pods: tuple[PodExplanation, ...] = ()
    nodes: tuple[NodeExplanation, ...] = ()
    fleets: tuple[FleetExplanation, ...] = ()
