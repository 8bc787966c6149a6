"""The purchase stated as numbers: items (pods of a class bound for a place) and offers (nodes)."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from reconciler.planner.capacity.problem.node_rules import NO_RULES, NodeRules, RulesOfItems
from reconciler.planner.fleets.new_nodes.new_node import NewNode
from reconciler.planner.placement.arrays import BoolArray, IntArray
from reconciler.planner.placement.classes import PodClass
from reconciler.planner.placement.filters import resources


@dataclass(frozen=True, slots=True, kw_only=True)
class Balanced:
    """What decides whether the nodes of two offers are alike, and how many nodes each fleet has."""

    likeness: Hashable
    """Offers of equal likeness are alike if their resources are as well."""
    any_resources: bool
    """Whether the resources of offers with equal likeness may differ."""
    size: int
    """How many nodes the fleet has or was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A node that may be bought, and how often."""

    node: NewNode
    most: int
    """UNLIMITED if nothing limits the fleet."""
    vector: IntArray
    """What a node offers per dimension."""
    over_subscription: int
    """In ten-thousandths, see `RowSpec`."""
    priority: int
    penalty_nano_usd: int = 0
    """Added to its hourly price only when purchases are compared; not part of the cost."""
    balanced: Balanced | None = None
    """None if its fleet's size is not balanced with others."""

    @property
    def compared_nano_usd(self) -> int:
        """Return the price by which purchases are compared."""
        return self.node.compared_nano_usd + self.penalty_nano_usd


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """Pods of one class that may go to the same offers."""

    pod_class: PodClass
    count: int
    slots: IntArray
    """(offers,) how many an empty node takes; 0 if filters or places forbid it."""
    groups: tuple[int, ...] = ()
    """Hostname rules that it takes part in; see `Problem.caps`."""
    rules: NodeRules = NO_RULES
    """The rules by which it and other classes limit each other on a node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Items to serve from offers at least cost."""

    offers: tuple[Offer, ...]
    items: tuple[Item, ...]
    counts: IntArray
    """(items,) pods."""
    needs: IntArray
    """(items, offers, dimensions) what one pod takes of each offer, inflated."""
    inflated: bool
    """Whether `needs` differ between offers."""
    slots: IntArray
    """(items, offers) how many pods an empty node takes; 0 if it takes none."""
    vectors: IntArray
    """(offers, dimensions)."""
    prices: IntArray
    """(offers,) in nano-USD per hour; see `as_compared`."""
    costs: IntArray
    """(offers,) what a node costs in nano-USD per hour, by which limits of money count it."""
    limits: IntArray
    """(offers,) how many may be bought."""
    caps: IntArray
    """(groups,) the most pods of a group on one node."""
    membership: BoolArray
    """(items, groups)."""
    rules: RulesOfItems
    """What items allow of each other on a node."""

    def with_caps(self) -> tuple[IntArray, IntArray]:
        """Return the requested resources, followed by the caps that several items share.

        Returns:
            (items, offers, resources) what a pod takes, and (offers, resources) what there is.
        """
        shared = (self.membership.sum(axis=0) > 1).nonzero()[0]
        asked = np.asarray(np.any(self.needs, axis=(0, 1))).nonzero()[0]
        shape = (*self.slots.shape, len(shared))
        members = np.broadcast_to(self.membership[:, None, shared], shape)
        caps = np.broadcast_to(self.caps[shared], shape[1:])
        needs = np.concatenate([self.needs[:, :, asked], members], axis=2)
        return needs, np.concatenate([self.vectors[:, asked], caps], axis=1)

    def useful(self) -> BoolArray:
        """Return (offers,) whether it takes at least one item."""
        return np.asarray(np.any(self.slots > 0, axis=0))

    def only(self, offers: IntArray) -> "Problem":
        """Return the same problem with only these offers."""
        shape = (len(self.items), len(offers), self.vectors.shape[1])
        needs = self.needs[:, offers] if self.inflated else self.needs[:, :1]
        return replace(
            self,
            offers=tuple(self.offers[int(i)] for i in offers),
            needs=np.broadcast_to(needs, shape),
            slots=self.slots[:, offers],
            vectors=self.vectors[offers],
            prices=self.prices[offers],
            costs=self.costs[offers],
            limits=self.limits[offers],
        )

    def as_compared(self) -> "Problem":
        """Return the same problem at the prices by which purchases are compared."""
        prices = np.array([o.compared_nano_usd for o in self.offers], dtype=np.int64)
        return replace(self, prices=prices)

    def remainder(self, counts: IntArray, bought: IntArray) -> "Problem":
        """Return the same problem with other counts, after some nodes were bought."""
        left = self.limits - np.bincount(bought, minlength=len(self.limits))
        return replace(self, counts=counts, limits=np.maximum(left, 0))

    def servable(self) -> BoolArray:
        """Return (items,) whether at least one offer takes it."""
        return np.asarray(np.any(self.slots > 0, axis=1))


def state_problem(offers: Sequence[Offer], items: Sequence[Item], caps: Sequence[int]) -> Problem:
    """Return the problem as arrays; an item has no slots on offers that do not take it."""
    dimensions = len(offers[0].vector) if offers else 0
    vectors = np.array([o.vector for o in offers], dtype=np.int64).reshape(len(offers), dimensions)
    over = np.array([o.over_subscription for o in offers], dtype=np.int64)
    requests = np.array([i.pod_class.requests for i in items], dtype=np.int64)
    requests = requests.reshape(len(items), dimensions)
    slots = np.zeros((len(items), len(offers)), dtype=np.int64)
    costs = np.array([o.node.nano_usd_per_hour for o in offers], dtype=np.int64)
    membership = np.zeros((len(items), len(caps)), dtype=np.bool_)
    for i, item in enumerate(items):
        slots[i] = item.slots
        for group in item.groups:
            membership[i, group] = True
            np.minimum(slots[i], caps[group], out=slots[i])
    return Problem(
        offers=tuple(offers),
        items=tuple(items),
        counts=np.array([item.count for item in items], dtype=np.int64),
        needs=_needs(requests, vectors, over),
        inflated=bool(over.any()),
        slots=slots,
        vectors=vectors,
        prices=costs,
        costs=costs,
        limits=np.array([o.most for o in offers], dtype=np.int64),
        caps=np.array(caps, dtype=np.int64),
        membership=membership,
        rules=RulesOfItems([item.rules for item in items]),
    )


def _needs(requests: IntArray, vectors: IntArray, over: IntArray) -> IntArray:
    """Return (items, offers, dimensions) needs, all equal unless offers inflate requests."""
    shape = (len(requests), *vectors.shape)
    if not over.any():
        return np.broadcast_to(requests[:, None, :], shape)
    needs = np.empty(shape, dtype=np.int64)
    for i, row in enumerate(requests):
        needs[i] = resources.charged(row, vectors, over)
    return needs


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What is on the nodes of a packing, as entries: some pods of one item on one node.

    There are a few entries per node, where a table of nodes and items would be nearly empty.
    """

    nodes: IntArray
    """(entries,), ascending; each pair with `items` occurs once."""
    items: IntArray
    """(entries,)"""
    pods: IntArray
    """(entries,), positive."""

    def of_nodes(self, kept: IntArray) -> "Contents":
        """Return the entries of these nodes (ascending), with the nodes renumbered from 0."""
        number = np.full(int(self.nodes.max(initial=-1)) + 1, -1, dtype=np.int64)
        known = kept[kept < len(number)]
        number[known] = np.arange(len(known))
        here = number[self.nodes] >= 0
        return Contents(
            nodes=number[self.nodes[here]], items=self.items[here], pods=self.pods[here]
        )


def contents_of(amounts: IntArray) -> Contents:
    """Return the entries of a (nodes, items) table."""
    nodes, items = amounts.nonzero()
    return Contents(nodes=nodes, items=items, pods=amounts[nodes, items])


def merged(nodes: IntArray, items: IntArray, pods: IntArray) -> Contents:
    """Return the entries with those of an item on the same node added up; any order is accepted."""
    order = np.lexsort((items, nodes))
    nodes, items, pods = nodes[order], items[order], pods[order]
    new = (np.diff(nodes, prepend=-1) != 0) | (np.diff(items, prepend=-1) != 0)
    firsts = new.nonzero()[0]
    if len(firsts) < len(pods):
        nodes, items, pods = nodes[firsts], items[firsts], np.add.reduceat(pods, firsts)
    return Contents(nodes=nodes, items=items, pods=pods)


class Packing:
    """Nodes to buy, and their pods."""

    __slots__ = ("_items", "bins", "contents")

    def __init__(self, *, bins: IntArray, amounts: IntArray | Contents, items: int = 0) -> None:
        """Build a packing.

        Args:
            bins: (nodes,) the offer of each node.
            amounts: (nodes, items) pods of each item on each node, or the same as entries.
            items: How many items there are, if entries are given.
        """
        self.bins = bins
        if isinstance(amounts, Contents):
            self.contents, self._items = amounts, items
        else:
            self.contents, self._items = contents_of(amounts), amounts.shape[1]

    @property
    def amounts(self) -> IntArray:
        """Return (nodes, items) pods: a new table per call, only for problems with few items."""
        table = np.zeros((len(self.bins), self._items), dtype=np.int64)
        table[self.contents.nodes, self.contents.items] = self.contents.pods
        return table

    def on_offers(self, bins: IntArray) -> "Packing":
        """Return the same nodes, bought from other offers."""
        return Packing(bins=bins, amounts=self.contents, items=self._items)

    def only(self, nodes: IntArray) -> "Packing":
        """Return the packing with these nodes only; `nodes` is ascending."""
        contents = self.contents.of_nodes(nodes)
        return Packing(bins=self.bins[nodes], amounts=contents, items=self._items)

    def joined(self, other: "Packing") -> "Packing":
        """Return the nodes of both packings, these first."""
        return Packing(
            bins=np.concatenate([self.bins, other.bins]),
            amounts=np.vstack([self.amounts, other.amounts]),
        )

    def cost(self, problem: Problem) -> int:
        """Return the price of all nodes in nano-USD per hour."""
        return int(problem.prices[self.bins].sum())

    def spent(self, problem: Problem) -> int:
        """Return what all nodes cost of a limit of money, in nano-USD per hour."""
        return int(problem.costs[self.bins].sum())

    def served(self) -> IntArray:
        """Return (items,) how many pods have a node."""
        total = np.zeros(self._items, dtype=np.int64)
        np.add.at(total, self.contents.items, self.contents.pods)
        return total


def no_packing(problem: Problem) -> Packing:
    """Return the packing that buys nothing."""
    nothing = np.zeros((0, len(problem.items)), dtype=np.int64)
    return Packing(bins=np.zeros(0, dtype=np.int64), amounts=nothing)
