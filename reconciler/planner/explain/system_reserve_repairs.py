"""Whether a lower `reserved_cpus` or `reserved_memory` would let a new node take a pod."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.model.cluster import Resources
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import FleetKey
from reconciler.planner.explain.amounts import round_for_people
from reconciler.planner.explain.repair import Repair
from reconciler.planner.fleets.inventory import FleetStatus
from reconciler.planner.fleets.new_nodes.new_node import new_node
from reconciler.planner.system_reserve import ALL_AS_EKS
from reconciler.planner.view import ClusterView

_KEYS: Final[Mapping[str, str]] = FrozenMap({"cpu": "reserved_cpus", "memory": "reserved_memory"})
_NO_LIMITS: Final[Mapping[str, int | None]] = FrozenMap()


class SystemReserveRepairs:
    """What the config's reserve takes of the new nodes of a plan's fleets."""

    def __init__(self, view: ClusterView) -> None:
        """Start without answers; each fleet is looked at once, if it is asked about."""
        self._view = view
        self._unreserved: dict[FleetKey, Resources] = {}

    def of(self, status: FleetStatus) -> Resources:
        """Return what the config reserves of a fleet's new nodes; empty if nothing."""
        return self._view.settings.reserve.of(status.settings.provider).amounts

    def unreserved(self, status: FleetStatus) -> Resources:
        """Return what a new node would offer if only the system and DaemonSets took of it."""
        if status.key not in self._unreserved:
            made = new_node(status, ALL_AS_EKS, self._view.daemons, _NO_LIMITS)
            self._unreserved[status.key] = made.row.allocatable
        return self._unreserved[status.key]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RepairedFleet:
    """The fleet whose new node is to take a pod."""

    status: FleetStatus
    reserves: SystemReserveRepairs

    @property
    def name(self) -> str:
        """Return its name."""
        return self.status.key.name

    def another(self, kind: str = "") -> str:
        """Return the change that adds nodes of another kind beside the fleet's own.

        Groups that were found by their tags have no sector to which a size could be added.
        """
        if self.status.settings.sector:
            return f"add a size {kind}to the sector of {self.name}"
        return f"add a group {kind}".rstrip()


def with_lower_reserve(repair: Repair, fleet: RepairedFleet, short: Sequence[str]) -> Repair | None:
    """Return the repair with as little reserved as lets the pod in; None if that is not enough.

    What system and DaemonSets take is not given away.

    Args:
        repair: The pod, and the row that offers too little.
        fleet: The fleet of the row.
        short: The resources of which it offers too little.
    """
    reserved = fleet.reserves.of(fleet.status)
    if not all(reserved.get(name) for name in short):
        return None
    asked, unreserved = repair.pod.spec.requests, fleet.reserves.unreserved(fleet.status)
    for name in short:
        if asked[name] > unreserved.get(name, 0):
            return None
        missing = asked[name] - repair.row.allocatable.get(name, 0)
        _, shown = round_for_people(name, reserved[name] - missing, up=False)
        more = FrozenMap({**repair.row.allocatable, name: asked[name]})
        row = repair.row._replace(allocatable=more)
        repair = repair.with_row(row, f"lower {_KEYS[name]} to {shown}", 4)
    return repair
