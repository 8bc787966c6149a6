"""What was bought, and how much may be."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from reconciler.planner.capacity.problem.offer_table import OfferTable, Want
from reconciler.planner.capacity.problem.problem import Offer
from reconciler.planner.fleets.new_nodes.new_node import NewNode
from reconciler.planner.placement.arrays import IntArray
from reconciler.planner.placement.classes import PodClass
from reconciler.planner.placement.filters import resources
from reconciler.planner.placement.simulation import RowSpec, Simulation
from reconciler.planner.settings import Expander

SECOND_TRY = 0.5
"""The search budget of a second try, in multiples of the first one's."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlacedPods:
    """Pods of a class on rows: `amounts[i]` of them on `rows[i]`."""

    pod_class: PodClass
    rows: IntArray
    amounts: IntArray


@dataclass(slots=True, eq=False)
class Purchase:
    """What was bought, and for which pods."""

    rows: list[tuple[int, NewNode]]
    """New rows of the simulation, in order."""
    taken: list[PlacedPods]
    left: list[Want]
    """The pods that could not be served."""
    over_limits: bool
    """Whether something was left out because of cost, or of how many nodes may be bought."""
    worth: dict[int, float] = field(default_factory=dict)
    """By class number, what the search found a pod to be worth, in nano-USD; empty if it ran out
    of effort and ignored rules."""
    steady: dict[int, float] = field(default_factory=dict)
    """By class number, a pod's worth if pods and nodes were divisible; empty if unknown."""
    divisible_nano_usd: float | None = None
    """The least cost of these classes from these offers if pods and nodes were divisible."""
    optimal: bool = False
    """Whether it is proven that nothing cheaper serves these classes from these offers."""
    nano_usd_least: int | None = None
    """A proven lower bound on the cost of these classes from these offers; else None."""
    lowered: dict[int, int] = field(default_factory=dict)
    """By row its over-subscription, if that is lower than the offer's; see `holding`."""
    left_out_classes: set[int] = field(default_factory=set)
    """Numbers of classes left out because their nodes open a zone for spreads of higher
    priorities."""

    @property
    def nano_usd(self) -> int:
        """Return what the new nodes cost per hour."""
        return sum(node.nano_usd_per_hour for _, node in self.rows)

    @property
    def compared_nano_usd(self) -> int:
        """Return the price by which the purchase is compared with others for the same pods."""
        return sum(node.compared_nano_usd for _, node in self.rows)

    def empty_rows(self) -> set[int]:
        """Return the new rows without a pod."""
        used = {row for each in self.taken for row in each.rows[each.amounts > 0].tolist()}
        return {row for row, _ in self.rows if row not in used}

    def leave(self, wants: Sequence[Want]) -> None:
        """Count more pods as left; what was proven does not include them."""
        if wants:
            counts: dict[int, Want] = {}
            for pod_class, count in (*self.left, *wants):
                known = counts.get(pod_class.number, (pod_class, 0))[1]
                counts[pod_class.number] = pod_class, known + count
            self.left = list(counts.values())
            self.forget_proofs()

    def note_left_out(self, instead_of: "Purchase") -> None:
        """Note the classes of which pods are left out so that pods of higher priority get nodes.

        Args:
            instead_of: The purchase that leaves out pods of higher priority instead.
        """
        counts = {pod_class.number: count for pod_class, count in instead_of.left}
        more = (c.number for c, count in self.left if count > counts.get(c.number, 0))
        self.left_out_classes.update(more)

    def forget_proofs(self) -> None:
        """Drop what was proven, because the purchase is to serve more pods."""
        self.optimal, self.nano_usd_least, self.divisible_nano_usd = False, None, None


@dataclass(frozen=True, slots=True, kw_only=True)
class PurchaseLimits:
    """How much may be bought; None for no limit."""

    nano_usd_per_hour: int | None = None
    nodes: int | None = None

    def less(self, nano_usd_per_hour: int, nodes: int) -> "PurchaseLimits":
        """Return what is left of the limits after such a purchase."""
        money, count = self.nano_usd_per_hour, self.nodes
        return PurchaseLimits(
            nano_usd_per_hour=None if money is None else money - nano_usd_per_hour,
            nodes=None if count is None else count - nodes,
        )

    def and_within(self, other: "PurchaseLimits") -> "PurchaseLimits":
        """Return the stricter of both limits."""
        money = (self.nano_usd_per_hour, other.nano_usd_per_hour)
        return PurchaseLimits(
            nano_usd_per_hour=min((each for each in money if each is not None), default=None),
            nodes=min((n for n in (self.nodes, other.nodes) if n is not None), default=None),
        )

    def allows(self, nano_usd_per_hour: int) -> bool:
        """Return whether one more node at this price may be bought."""
        return self.holds(nano_usd_per_hour, 1)

    def holds(self, nano_usd_per_hour: int, nodes: int) -> bool:
        """Return whether this many nodes may be bought at this cost together."""
        money = self.nano_usd_per_hour
        return (money is None or nano_usd_per_hour <= money) and (
            self.nodes is None or nodes <= self.nodes
        )


NO_PURCHASE_LIMITS = PurchaseLimits()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PodsWithReservation:
    """Pods with reserved places on nodes that have not joined: spreads may still reject them."""

    taken: Sequence[PlacedPods]
    table: OfferTable
    """The nodes that may be bought for them."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PurchaseRequest:
    """What to buy: for which pods, from which offers, and with which search."""

    wants: Sequence[Want]
    table: OfferTable
    search_seconds: float
    """The time budget of the search, as work: see `Effort`."""
    expander: Expander = "cost"
    limits: PurchaseLimits = NO_PURCHASE_LIMITS
    reserved: Callable[[], Sequence[PodsWithReservation]] = tuple
    """Returns the pods that wait for other nodes, whose spreads count the new ones as well.

    It is called if a purchase opens a zone.
    """

    def again(self, wants: Sequence[Want], table: OfferTable) -> "PurchaseRequest":
        """Return a request for a second try with other pods or offers, and less search."""
        seconds = SECOND_TRY * self.search_seconds
        return replace(self, wants=wants, table=table, search_seconds=seconds)


def holding(offer: Offer, wants: Sequence[Want]) -> Offer:
    """Return the offer with an over-subscription with which one node has room for these pods.

    Pods that must share a node have to fit it by their requests, or they never find one.
    """
    if not offer.over_subscription:
        return offer
    requests = np.array([pod_class.requests for pod_class, _ in wants], dtype=np.int64)
    counts = np.array([count for _, count in wants], dtype=np.int64)
    most = resources.most_over_subscription(requests, counts, offer.vector, offer.over_subscription)
    return offer if most == offer.over_subscription else replace(offer, over_subscription=most)


def priced_row(offer: Offer) -> RowSpec:
    """Return the row of a new node, on which requests are inflated."""
    row = offer.node.row
    return RowSpec(
        name=row.name,
        variants=row.variants,
        taints=row.taints,
        schedulable=row.schedulable,
        allocatable=row.allocatable,
        volume_limits=row.volume_limits,
        taken_ports=row.taken_ports,
        daemons=row.daemons,
        imagined=True,
        over_subscription=offer.over_subscription,
    )


def taken_by_row(pod_class: PodClass, pairs: Sequence[tuple[int, int]]) -> PlacedPods:
    """Return pods by row; a row may occur several times."""
    at = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    rows, number = np.unique(at[:, 0], return_inverse=True)
    amounts = np.zeros(len(rows), dtype=np.int64)
    np.add.at(amounts, number.reshape(-1), at[:, 1])
    return PlacedPods(pod_class=pod_class, rows=rows, amounts=amounts)


def by_class(purchase: Purchase, rows: int = 0) -> list[PlacedPods]:
    """Return the pods on the rows from `rows` on, once per class."""
    found: dict[int, tuple[PodClass, list[tuple[int, int]]]] = {}
    for taken in purchase.taken:
        pairs = zip(taken.rows.tolist(), taken.amounts.tolist(), strict=True)
        known = found.setdefault(taken.pod_class.number, (taken.pod_class, []))
        known[1].extend((row, amount) for row, amount in pairs if row >= rows)
    return [taken_by_row(pod_class, pairs) for pod_class, pairs in found.values() if pairs]


def restore(sim: Simulation, mark: tuple[int, int], table: OfferTable, purchase: Purchase) -> None:
    """Replace what came after `mark` in the simulation by the nodes and pods of a purchase.

    Args:
        sim: The simulation.
        mark: Its state before the purchase.
        table: The offers.
        purchase: What was bought.
    """
    sim.revert(mark)
    offers = {id(offer.node): offer for offer in table.offers}
    for row, node in purchase.rows:
        offer = offers[id(node)]
        over = purchase.lowered.get(row, offer.over_subscription)
        sim.add_row(priced_row(replace(offer, over_subscription=over)))
    for taken in purchase.taken:
        pairs = zip(taken.rows.tolist(), taken.amounts.tolist(), strict=True)
        once = taken_by_row(taken.pod_class, list(pairs))
        sim.place(once.pod_class, once.rows, once.amounts)


def drop_empty(
    sim: Simulation,
    mark: tuple[int, int],
    table: OfferTable,
    purchase: Purchase,
    but: Collection[int] = (),
) -> None:
    """Remove nodes without pods from a purchase and from the simulation.

    They occur if limits left out the node of pods that these pods must be near.

    Args:
        sim: The simulation, with the purchase.
        mark: Its state before the purchase.
        table: The offers.
        purchase: What was bought.
        but: Rows that stay, even if empty.
    """
    empty = purchase.empty_rows().difference(but)
    kept = [each for each in purchase.rows if each[0] not in empty]
    if len(kept) == len(purchase.rows):
        return
    number = {row: mark[1] + place for place, (row, _) in enumerate(kept)}
    purchase.rows = [(number[row], node) for row, node in kept]
    purchase.lowered = {
        number[row]: over for row, over in purchase.lowered.items() if row in number
    }
    purchase.taken = [
        taken_by_row(
            taken.pod_class,
            [
                (number.get(row, row), amount)
                for row, amount in zip(taken.rows.tolist(), taken.amounts.tolist(), strict=True)
                if amount
            ],
        )
        for taken in purchase.taken
    ]
    restore(sim, mark, table, purchase)


def leaves_fewer(purchase: Purchase, than: Purchase) -> bool:
    """Return whether `purchase` leaves fewer of the same pods than `than`.

    The highest priority is compared first.
    """
    return fewer(purchase.left, than.left)


def fewer(left: Sequence[Want], than: Sequence[Want]) -> bool:
    """Return whether `left` are fewer pods than `than`, the highest priority compared first."""
    balance: dict[int, int] = {}
    for sign, wants in ((1, left), (-1, than)):
        for pod_class, count in wants:
            priority = pod_class.spec.priority
            balance[priority] = balance.get(priority, 0) + sign * count
    return next((balance[p] < 0 for p in sorted(balance, reverse=True) if balance[p]), False)
