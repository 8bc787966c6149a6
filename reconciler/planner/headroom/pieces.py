"""What headroom a config asks for, in pieces that one node can hold (docs/scale-up.md).

A piece is treated as a pod without a name that would run in the sector. CPU and memory are kept in
one piece, as one pod could use them, or in the fewest equal ones where no node of the sector is so
large. `nodes` are as many pieces of the size of the sector's cheapest node, `percent` is a share of
what the sector's pods ask for, in pieces of at most that size. Pods that get no place do not count:
whoever asks for what no node has would have others' headroom bought for it.
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from math import ceil

from reconciler.model.cluster import Pod, PodSpec, Taint, TaintEffect, Toleration
from reconciler.model.frozen import FrozenMap, Labels
from reconciler.model.ids import FleetKey, PodKey
from reconciler.model.quantity import format_amount
from reconciler.model.text import counted_noun
from reconciler.planner.demand import SECTOR
from reconciler.planner.fleets.inventory import Inventory
from reconciler.planner.fleets.new_nodes.new_node import NewNode
from reconciler.planner.pod_groups import PodGroup
from reconciler.planner.settings import Headroom, PlannerSettings

_HUNDRED = 100
_TaintKind = tuple[str, TaintEffect]
"""Key and effect: with these a taint is tolerated, whatever its value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadroomPieces:
    """One item of `headroom`."""

    sector: str
    asked: str
    """What the config asks for, in words."""
    pod: Pod
    """A pod as large as one piece."""
    count: int

    @property
    def has_size(self) -> bool:
        """Return whether there is a node in the sector that a piece could be measured by."""
        return not {"cpu", "memory"}.isdisjoint(self.pod.spec.requests)


@dataclass(frozen=True, slots=True)
class _Size:
    cpu_milli: int
    memory_bytes: int

    def pieces_of(self, most: "_Size") -> int:
        """Return into how many equal parts it must be split so that none exceeds `most`.

        0 if no split suffices, or if it is empty.
        """
        if (self.cpu_milli and not most.cpu_milli) or (self.memory_bytes and not most.memory_bytes):
            return 0
        by_cpu = ceil(self.cpu_milli / most.cpu_milli) if self.cpu_milli else 0
        by_memory = ceil(self.memory_bytes / most.memory_bytes) if self.memory_bytes else 0
        return max(by_cpu, by_memory)

    def part(self, count: int) -> "_Size":
        return _Size(ceil(self.cpu_milli / count), ceil(self.memory_bytes / count))


_NO_SIZE = _Size(0, 0)


def headroom_pods(settings: PlannerSettings, inventory: Inventory) -> tuple[Pod, ...]:
    """Return one pod per headroom item, with sector and tolerations.

    Its requests are set once demand has been placed.
    """
    return tuple(
        _pod(inventory, item.sector, number, _NO_SIZE)
        for number, item in enumerate(settings.headroom)
    )


def headroom_pieces(
    settings: PlannerSettings,
    inventory: Inventory,
    offers: Mapping[FleetKey, NewNode],
    bound: Iterable[PodGroup],
    placed: Iterable[tuple[str, PodSpec, int]],
) -> tuple[HeadroomPieces, ...]:
    """Return all headroom of the config.

    Args:
        settings: The sector config, resolved.
        inventory: Fleets and their nodes.
        offers: What a new node of each fleet is.
        bound: Pods on nodes.
        placed: Pods without one to which the plan gives a place: their sector, and how many.
    """
    if not settings.headroom:
        return ()
    asked_for = _asked_for(inventory, bound, placed)
    found = []
    for number, item in enumerate(settings.headroom):
        nodes = _nodes(inventory, offers, item.sector)
        parted = _pieces_of(item, nodes, asked_for.get(item.sector, _NO_SIZE))
        if parted is not None:
            size, count = parted
            pod = _pod(inventory, item.sector, number, size)
            words = _words(item)
            found.append(HeadroomPieces(sector=item.sector, asked=words, pod=pod, count=count))
    return tuple(found)


def _nodes(
    inventory: Inventory, offers: Mapping[FleetKey, NewNode], sector: str
) -> Sequence[_Size]:
    """Return what pods may take of new nodes of the sector's fleets, the cheapest first.

    Fleets of whose nodes nothing is known count as free, but offer nothing: they are left out.
    """
    statuses = [
        s for s in inventory.fleets if s.settings.sector == sector and not s.settings.departing
    ]
    tolerated = _tolerated(inventory, sector)
    usable = [s for s in statuses if {_taint(taint) for taint in s.taints} <= tolerated]
    keys = [s.key for s in usable or statuses]
    keys.sort(key=lambda key: (offers[key].compared_nano_usd, key))
    rooms = [offers[key].row.allocatable for key in keys]
    sizes = [_Size(room.get("cpu", 0), room.get("memory", 0)) for room in rooms]
    return [size for size in sizes if size.cpu_milli and size.memory_bytes] or sizes


def _pieces_of(
    item: Headroom, nodes: Sequence[_Size], asked_for: _Size
) -> tuple[_Size, int] | None:
    """Return the size of a piece and how many there are; None where nothing is to be kept.

    A piece has no size where no node is known that could hold one.
    """
    if item.nodes:
        return (nodes[0] if nodes else _NO_SIZE), item.nodes
    whole = _Size(item.cpu_milli, item.memory_bytes)
    among = nodes
    if item.percent:
        whole = _Size(
            ceil(asked_for.cpu_milli * item.percent / _HUNDRED),
            ceil(asked_for.memory_bytes * item.percent / _HUNDRED),
        )
        among = nodes[:1]
    if whole == _NO_SIZE:
        return None
    count = min((n for node in among if (n := whole.pieces_of(node))), default=0)
    return (whole.part(count), count) if count else (_NO_SIZE, 1)


def _asked_for(
    inventory: Inventory, bound: Iterable[PodGroup], placed: Iterable[tuple[str, PodSpec, int]]
) -> Mapping[str, _Size]:
    """Return by sector the sum of the requests of running and placed pods, without DaemonSets."""
    sums: dict[str, list[int]] = {}

    def add(sector: str, spec: PodSpec, count: int) -> None:
        total = sums.setdefault(sector, [0, 0])
        total[0] += spec.requests.get("cpu", 0) * count
        total[1] += spec.requests.get("memory", 0) * count

    sector_of = {s.key: s.settings.sector for s in inventory.fleets}
    for group in bound:
        if group.traits.daemon or group.traits.mirror or group.traits.spec.priority < 0:
            continue
        for pod in group.pods:
            key = inventory.fleet_of_node.get(pod.node_name) if pod.node_name else None
            if key in sector_of:
                add(sector_of[key], pod.spec, 1)
    for sector, spec, count in placed:
        if spec.priority >= 0:
            add(sector, spec, count)
    return {sector: _Size(*total) for sector, total in sums.items()}


def _pod(inventory: Inventory, sector: str, number: int, size: _Size) -> Pod:
    """Return a pod of the piece's size that selects the sector and tolerates its fleets' taints."""
    tolerations = {
        Toleration(key=key, operator="Exists", effect=effect)
        for key, effect in _tolerated(inventory, sector)
    }
    requests = {"cpu": size.cpu_milli, "memory": size.memory_bytes, "pods": 1}
    spec = PodSpec(
        requests=FrozenMap({name: amount for name, amount in requests.items() if amount}),
        node_selector=Labels({SECTOR: sector} if sector else {}),
        tolerations=tuple(sorted(tolerations, key=lambda t: (t.key, t.effect))),
        preempts=False,
    )
    return Pod(key=PodKey(namespace="", name=f"headroom-{number}", uid=""), spec=spec)


def _tolerated(inventory: Inventory, sector: str) -> AbstractSet[_TaintKind]:
    """Return the taints that pods of the sector tolerate: all of its fleets.

    All groups that are found are in the sector without a name. There these are only the taints that
    every group has, and soft ones: dedicated groups hold no room for other pods.
    """
    found = [
        {_taint(taint) for taint in status.taints}
        for status in inventory.fleets
        if status.settings.sector == sector
    ]
    every = set[_TaintKind]().union(*found)
    if sector or not found:
        return every
    soft = {(key, effect) for key, effect in every if effect == "PreferNoSchedule"}
    return soft | set.intersection(*found)


def _taint(taint: Taint) -> _TaintKind:
    return taint.key, taint.effect


def _words(item: Headroom) -> str:
    if item.nodes:
        return counted_noun(item.nodes, "node")
    if item.percent:
        return f"{item.percent:g} percent of what its pods ask for"
    sizes = (("cpu", item.cpu_milli, " CPU"), ("memory", item.memory_bytes, ""))
    return " and ".join(f"{format_amount(n, amount)}{unit}" for n, amount, unit in sizes if amount)
