"""The share of each node that its pods request, without DaemonSet and mirror pods."""

import numpy as np

from reconciler.model.ids import NodeName
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.placement.arrays import FloatArray, IntArray
from reconciler.planner.placement.dimensions import BASIC


class Utilisation:
    """Divides the requests of pods by what DaemonSets leave, per node and resource."""

    def __init__(self, builder: PlanBuilder) -> None:
        view = builder.view
        names = builder.sim.dimensions.names
        extended = [i for i, n in enumerate(names) if _is_extended(n)]
        self._columns = [0, 1, *extended]
        rows = np.array(list(view.row_of.values()), dtype=np.int64)
        self._at = {name: i for i, name in enumerate(view.row_of)}
        allocatable = builder.sim.allocatable[rows][:, self._columns]
        used = allocatable - builder.sim.free[rows][:, self._columns]
        daemons = self._daemons(builder)
        share = _share(used - daemons, allocatable - daemons)
        share[:, 2:][allocatable[:, 2:] <= 0] = 0.0
        self._share: list[list[float]] = share.tolist()
        self._names = [names[column] for column in self._columns]

    def _daemons(self, builder: PlanBuilder) -> IntArray:
        view = builder.view
        total = np.zeros((len(self._at), len(self._columns)), dtype=np.int64)
        for group in view.running:
            if group.traits.mirror or group.traits.daemon:
                for pods in view.table.parted(group.pods):
                    requests = view.table.of(pods[0], bound=True).requests[self._columns]
                    at = [self._at[p.node_name] for p in pods if p.node_name in self._at]
                    np.add.at(total, np.array(at, dtype=np.int64), requests)
        return total

    def highest(self, name: NodeName) -> float:
        """Return the highest share of any resource."""
        return max(self._share[self._at[name]])

    def shown(self, name: NodeName) -> str:
        """Return the shares for people, such as `cpu 20 %, memory 35 %`."""
        shares = self._share[self._at[name]]
        return ", ".join(
            f"{what} {share:.0%}".replace("%", " %")
            for what, share in zip(self._names, shares, strict=True)
            if share > 0 or what in BASIC
        )


def _is_extended(name: str) -> bool:
    """Return whether the column is a vendor's device, and no host port or attachment."""
    return name not in BASIC and "/" in name and not name.startswith(("host-port:", "attach:"))


def _share(used: IntArray, offered: IntArray) -> FloatArray:
    """Return used over offered; 1 if DaemonSets leave nothing."""
    share = np.maximum(used, 0) / np.maximum(offered, 1)
    return np.where(offered > 0, share, 1.0)
