"""Everything countable on a node is one column: resources, host ports, volume attachments.

Source: kube-scheduler's NodeResourcesFit, NodePorts and NodeVolumeLimits all say that the sum on a
node stays within a limit, so one integer matrix serves them.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache

import numpy as np

from reconciler.model.cluster import ANY_ADDRESS, HostPort, PodSpec, Resources
from reconciler.model.frozen import FrozenMap
from reconciler.model.interning import InternTable
from reconciler.model.quantity import format_amount
from reconciler.planner.placement.arrays import UNLIMITED, IntArray

BASIC = ("cpu", "memory", "pods", "ephemeral-storage")
AMOUNT_MAX = 2**48
"""The most of a resource that is counted on one node: 256 TiB, or as many of anything.

A node that offers more counts as offering this. Sums of larger amounts, inflated by an
over-subscription, would exceed 64 bits.
"""
BEYOND = AMOUNT_MAX + 1
"""Stands for a request above `AMOUNT_MAX`: more than any node offers.

By how much pods and nodes exceed the limit cannot be compared, so no node takes such a pod.
"""
_ROWS_MAX = 4096
"""How many pods' rows are cached, twice over, if of usual size; fewer of larger ones."""
_USUAL_COLUMNS = 64
"""The usual number of columns of a row: one with more counts as several."""
PodRow = tuple[IntArray, IntArray]
"""Amounts, and the columns that are not zero."""
NOWHERE = "(none)"
"""The one column of all resources that pods ask for and no node has or would have."""
PORTS_MAX = 1024
"""How many host ports of one namespace are counted: each is a column of every node's row.

Those of pods without a node come first, as these need their column to get a place.
"""
OTHER_PORTS = "(other)"
_PORT = "host-port:"
_VOLUMES = "attach:"


class Dimensions:
    """The columns of the resource matrix.

    Args:
        extended: The resources in addition to the basic ones.
        ports: The host ports that are counted. Pods that ask for another one fit nowhere; running
            ones take it only from pods that ask for the same number.
        drivers: The CSI drivers of all volumes.
    """

    def __init__(
        self, extended: Iterable[str], ports: Iterable[HostPort], drivers: Iterable[str]
    ) -> None:
        self._addresses: dict[str, set[str]] = {}
        for port in ports:
            self._addresses.setdefault(_port_name(port), set()).add(port.address)
        port_columns = [
            column
            for name, addresses in sorted(self._addresses.items())
            for column in (name, *(f"{name}@{a}" for a in sorted(addresses - {ANY_ADDRESS})))
        ]
        others = [f"{_PORT}{OTHER_PORTS}"] if port_columns else []
        self.names: tuple[str, ...] = (
            *BASIC,
            *sorted(extended),
            *others,
            *port_columns,
            *(f"{_VOLUMES}{driver}" for driver in sorted(set(drivers))),
        )
        self.column: dict[str, int] = {name: i for i, name in enumerate(self.names)}
        self._nowhere = self.column.get(NOWHERE, 0)
        self._defaults = np.array([self._default(name) for name in self.names], dtype=np.int64)
        self._rows: InternTable[tuple[object, ...], PodRow] = InternTable(_ROWS_MAX)

    def _default(self, name: str) -> int:
        """Return a node's amount of a column that its allocatable does not name."""
        if name.startswith(_VOLUMES):
            return UNLIMITED
        if name == f"{_PORT}{OTHER_PORTS}":
            return 0
        if name.startswith(_PORT):
            return 1 if "@" in name else len(self._addresses[name] | {ANY_ADDRESS})
        return 0

    def of_node(
        self,
        allocatable: Resources,
        volume_limits: Mapping[str, int | None],
        taken_ports: Sequence[HostPort] = (),
    ) -> IntArray:
        """Return a node's row: what it offers of every column, less host ports already taken."""
        row = self._defaults.copy()
        for name, amount in allocatable.items():
            if name in self.column:
                row[self.column[name]] = min(amount, AMOUNT_MAX)
        for driver, limit in volume_limits.items():
            name = f"{_VOLUMES}{driver}"
            if limit is not None and name in self.column:
                row[self.column[name]] = limit
        for port in taken_ports:
            self._withhold_port(row, port)
        return row

    def _withhold_port(self, row: IntArray, port: HostPort) -> None:
        """Subtract a host port from what a node offers.

        Ports that no pod asks for have no column.
        """
        name = _port_name(port)
        if name not in self.column:
            return
        row[self.column[name]] -= self.shares(port)
        address = self.column.get(f"{name}@{port.address}")
        if address is not None:
            row[address] = 0

    def of_pod(
        self,
        requests: Resources,
        ports: tuple[HostPort, ...],
        volumes: FrozenMap[str, int],
        *,
        takes_all: bool = False,
    ) -> PodRow:
        """Return what a pod takes of each column, and of which it takes any; read-only.

        Args:
            requests: Its resources.
            ports: Its host ports.
            volumes: The number of attached volumes per CSI driver.
            takes_all: Whether it takes all of what it may ask for besides these.
        """
        key = (requests, ports, volumes, takes_all)
        known = self._rows.get(key)
        if known is None:
            row = self._made(requests, ports, volumes)
            if takes_all:
                row = self._all_taken(row)
            weight = 1 + len(row) // _USUAL_COLUMNS
            known = self._rows.put(key, (row, row.nonzero()[0]), weight)
        return known

    def _made(
        self, requests: Resources, ports: tuple[HostPort, ...], volumes: FrozenMap[str, int]
    ) -> IntArray:
        row = np.zeros(len(self.names), dtype=np.int64)
        for name, amount in requests.items():
            row[self.column.get(name, self._nowhere)] = min(amount, BEYOND)
        # Containers of one pod may name a port twice: kube-scheduler only compares with other pods.
        everywhere = {_port_name(port) for port in ports if port.address == ANY_ADDRESS}
        for port in ports:
            if port.address == ANY_ADDRESS or _port_name(port) not in everywhere:
                self._take_port(row, port)
        for driver, count in volumes.items():
            row[self.column[f"{_VOLUMES}{driver}"]] += count
        row.flags.writeable = False
        return row

    def _all_taken(self, row: IntArray) -> IntArray:
        """Return the row with so many host ports and extended resources that no node fits."""
        taken = row.copy()
        for name, column in self.column.items():
            if name not in BASIC and not name.startswith(_VOLUMES):
                taken[column] = BEYOND
        taken.flags.writeable = False
        return taken

    def _take_port(self, row: IntArray, port: HostPort) -> None:
        """Add what a host port takes: its address and one share, or all shares for 0.0.0.0."""
        name = _port_name(port)
        addresses = self._addresses.get(name, ())
        if port.address not in addresses:
            row[self.column[f"{_PORT}{OTHER_PORTS}"]] = 1
        if name not in self.column:
            return
        if port.address == ANY_ADDRESS:
            row[self.column[name]] = self.shares(port)
            return
        row[self.column[name]] += 1
        if port.address in addresses:
            row[self.column[f"{name}@{port.address}"]] += 1

    def shares(self, port: HostPort) -> int:
        """Return how many shares of its port number the port takes: all of them for 0.0.0.0."""
        if port.address != ANY_ADDRESS:
            return 1
        return len(self._addresses[_port_name(port)] | {ANY_ADDRESS})

    def attachments(self, driver: str) -> int:
        """Return the column of a CSI driver's attachments."""
        return self.column[f"{_VOLUMES}{driver}"]

    def resource(self, column: int, requests: Resources) -> str:
        """Return the name of a column, or which of the requests it stands for."""
        name = self.names[column]
        if name != NOWHERE:
            return name
        return min((request for request in requests if request not in self.column), default=name)

    @property
    def resources(self) -> frozenset[str]:
        """Return the resources with a column of their own."""
        return frozenset(
            name
            for name in self.column
            if name != NOWHERE and not name.startswith((_PORT, _VOLUMES))
        )

    def code(self, column: int, requests: Resources) -> str:
        """Return the unplaceable code for a shortage of this column, for these requests."""
        return self.code_of(self.resource(column, requests))

    def code_of(self, name: str) -> str:
        """Return the unplaceable code for a shortage of what `resource` names."""
        if name.startswith(_PORT):
            return "host-port"
        return "volume-limit" if name.startswith(_VOLUMES) else f"insufficient-{name}"

    def shown(self, column: int, amount: int) -> str:
        """Return an amount of this column for people."""
        return format_amount(self.names[column], amount)


def dimensions_for(
    specs: Collection[PodSpec],
    drivers: Iterable[str],
    ports_of_namespaces: Iterable[Sequence[HostPort]] = (),
    offered: frozenset[str] | None = None,
) -> Dimensions:
    """Return the columns that these specs and volumes need; the same object for the same columns.

    Args:
        specs: Of all pods.
        drivers: The CSI drivers of any volume.
        ports_of_namespaces: The different host ports that pods ask for, by namespace, in the order
            of their need. Of each namespace the first `PORTS_MAX` are counted, whatever other
            namespaces ask for.
        offered: Resources that any node has or would have: only these get a column of their own.
    """
    asked = {name for spec in specs for name in spec.requests}.difference(BASIC)
    extended = asked if offered is None else asked & offered
    if len(extended) < len(asked):
        extended.add(NOWHERE)
    ports = {port for host_ports in ports_of_namespaces for port in host_ports[:PORTS_MAX]}
    return _dimensions(frozenset(extended), frozenset(ports), frozenset(drivers))


@lru_cache(maxsize=4)
def _dimensions(
    extended: frozenset[str], ports: frozenset[HostPort], drivers: frozenset[str]
) -> Dimensions:
    """Return the columns; remembered, as most snapshots need those of the one before."""
    return Dimensions(extended, ports, drivers)


def _port_name(port: HostPort) -> str:
    return f"{_PORT}{port.protocol}/{port.port}"
