"""The search for a set of nodes that cheaper nodes together could replace.

One node rarely fits into one cheaper node, but a sector whose nodes are each half used can run on
fewer or smaller ones. So the pods of the worst used nodes are removed together and placed on the
nodes that stay, and the purchase search says what the rest would cost. If it would buy again what
the set has, those nodes stay and the set gets smaller.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from reconciler.model.cluster import Pod
from reconciler.model.ids import FleetKey
from reconciler.planner.capacity.buy import buy
from reconciler.planner.capacity.problem.offer_table import OfferTable, Want
from reconciler.planner.capacity.problem.purchase import PurchaseRequest
from reconciler.planner.disruption.blockers.move_cost import move_cost_nano_usd, moves_rank
from reconciler.planner.disruption.candidate import Candidate
from reconciler.planner.disruption.disruption_context import DisruptionContext
from reconciler.planner.disruption.drains.replacement_sets import last_failure
from reconciler.planner.disruption.replacement.removal_trials import RemovalTrials
from reconciler.planner.disruption.replacement.unproven_version import unproven_version
from reconciler.planner.disruption.saving import SAVING_NANO_USD_MIN, SAVING_PERCENT_MIN
from reconciler.planner.disruption.simulator.drain_simulator import DrainSimulator
from reconciler.planner.disruption.simulator.relocation import grouped
from reconciler.planner.node_rows import in_each_zone
from reconciler.planner.offers import offer_of, purchase_limits
from reconciler.planner.placement.simulation import RowSpec

NODES_MAX = 100
"""The most nodes of a sector that are examined together.

Source: Karpenter's multi-node limit.
"""
NODES_PER_DRAIN = 20
"""The most nodes of a set per node that may be drained at once: a set should be gone within an
hour."""
SMALL_POOL = 12
"""A pool of at most this many nodes is searched every ten seconds, a larger one so in one minute
of five."""
TURN_MINUTES = 5
ONE_FLEET_MAX = 6
"""How many sets with new nodes of one fleet are checked, if no other set will do."""
REPACKED_MAX = 3
"""How many sets that replace all their nodes are checked, if no other set saves enough."""
SEARCH_SECONDS = 0.05
"""The budget of one purchase search, in steps of known cost."""
COUNTED_MAX = 100_000
"""The budget, in all purchases of one search together, of pairs of a kind of pods and a rule
that counts it; one purchase has at most a quarter of what is left. If every pod has a rule
about all others the pairs grow with the square of the pods, and their nodes are left to moves
one by one."""
ROUNDS_MAX = 4
"""How often a set is made smaller by nodes that would be bought again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedSet:
    """Nodes that may leave together, and the new nodes to ask for."""

    members: tuple[Candidate, ...]
    """In the order in which they leave."""
    wanted: Mapping[FleetKey, int]
    saving: int
    """In nano-USD per hour."""
    worth: int
    """The saving less the cost of the moves, in nano-USD; the set with the most is the best."""


class SetSearch:
    """Searches for the set of one sector that saves most.

    Args:
        context: The run.
        trials: What takes nodes out of the what-if cluster.
        sector: The sector of the nodes that leave and of the new ones.
    """

    def __init__(self, context: DisruptionContext, trials: RemovalTrials, sector: str) -> None:
        self._context = context
        self._builder = context.builder
        self._trials = trials
        self._simulator: DrainSimulator = trials.simulator
        self._sector = sector
        self._counted_left = COUNTED_MAX

    def best(self, pool: Sequence[Candidate]) -> ProposedSet | None:
        """Return the best set among these nodes of one region; None if none is worth it.

        None as well if a node can leave by itself that was not examined yet: it would be replaced
        together with nodes that need not leave. Nothing is changed.
        """
        if len(pool) > SMALL_POOL and int(self._context.view.at.timestamp()) // 60 % TURN_MINUTES:
            return None
        at_once = max(c.status.settings.scale_in.non_empty_at_once_max for c in pool)
        most = min(NODES_MAX, NODES_PER_DRAIN * at_once)
        ordered = sorted(pool, key=self._wasted_most)[:most]
        table = self._offers(ordered)
        if not table.offers:
            return None
        best: ProposedSet | None = None
        repacked: list[ProposedSet] = []
        looked_at: list[Sequence[Candidate]] = []
        for members, priced, smaller in self._rounds(ordered, table):
            looked_at.append(members)
            if len(smaller) == len(members):
                best = _better(best, self._checked(priced))
            elif priced is not None:
                if self._goes_by_itself(smaller):
                    return None
                repacked.append(priced)
        return best or self._best_repacked(repacked) or self._best_of_one_fleet(looked_at, table)

    def _rounds(
        self, ordered: Sequence[Candidate], table: OfferTable
    ) -> Iterator[tuple[Sequence[Candidate], ProposedSet | None, Sequence[Candidate]]]:
        """Yield sets of these nodes, each once, with two results of pricing its new nodes.

        The first is the set as proposed; None if it saves too little or its pods have no place. The
        second are its nodes without those that would be bought again, which make the next set.
        """
        seen: set[frozenset[str]] = set()
        for size in _sizes(len(ordered)):
            members: Sequence[Candidate] = ordered[:size]
            for _ in range(ROUNDS_MAX):
                names = frozenset(c.node.name for c in members)
                if len(members) < 2 or names in seen:
                    break
                seen.add(names)
                wanted = self._price(members, table)
                if wanted is None:
                    yield members, None, members
                    break
                smaller = self._without_rebought(members, wanted)
                yield members, self._saving(members, wanted), smaller
                if len(smaller) == len(members):
                    break
                members = smaller

    def _goes_by_itself(self, members: Sequence[Candidate]) -> bool:
        """Return whether this is a single node that needs no set to leave."""
        return len(members) == 1 and self._trials.blocker_of(members[0]) is None

    def _best_repacked(self, proposed: Sequence[ProposedSet]) -> ProposedSet | None:
        """Return the best set among those that buy again what some of their nodes are."""
        return self._first_checked(proposed, REPACKED_MAX)

    def _first_checked(self, proposed: Iterable[ProposedSet], most: int) -> ProposedSet | None:
        """Return the best of the first `most` sets that can leave as proposed."""
        untried = (
            proposed_set for proposed_set in proposed if not self._would_fail_again(proposed_set)
        )
        first = sorted(untried, key=lambda each: -each.worth)[:most]
        return next(
            (found for proposed_set in first if (found := self._checked(proposed_set))), None
        )

    def _would_fail_again(self, proposed: ProposedSet) -> bool:
        """Return whether it rebuys the kind of some of its nodes, one of which was in a failed set.

        The failure counts for a day: what made that set fail would make this one fail too.
        """
        view, members = self._context.view, proposed.members
        if not any(member.status.key in proposed.wanted for member in members):
            return False
        return any(last_failure(view, member.node) is not None for member in members)

    def _best_of_one_fleet(
        self, looked_at: Sequence[Sequence[Candidate]], table: OfferTable
    ) -> ProposedSet | None:
        """Return the best set with new nodes of one fleet, for when the cheapest mix is tight.

        The cheapest new nodes are often full to the last 100 millicores, which kube-scheduler does
        not pack; a larger node at a slightly higher price has room. Only for sets of up to
        `SMALL_POOL` nodes.
        """
        if len(table.offers) < 2:
            return None
        tables = [OfferTable(self._builder.sim, [offer]) for offer in table.offers]
        proposed = [
            proposed_set
            for members in looked_at
            if len(members) <= SMALL_POOL
            for proposed_set in self._of_one_fleet(members, tables)
        ]
        return self._first_checked(proposed, ONE_FLEET_MAX)

    def _of_one_fleet(
        self, members: Sequence[Candidate], tables: Iterable[OfferTable]
    ) -> list[ProposedSet]:
        """Yield replacements of these nodes by new ones of a single fleet, as far as they save.

        Of fleets alike in size and price, as those of several zones are, only the first is tried.
        """
        most = sum(map(self._price_of, members)) * (100 - SAVING_PERCENT_MIN) // 100
        proposed_sets: dict[tuple[int, bytes], ProposedSet] = {}
        with self._taken_out(members) as left:
            if not left:
                return []
            asked = sum(pod_class.requests * count for pod_class, count in left)
            for table in tables:
                (offer,) = table.offers
                size = (offer.compared_nano_usd, offer.vector.tobytes())
                fewest = int((-(-asked // np.maximum(offer.vector, 1))).max())
                if size in proposed_sets or offer.compared_nano_usd * fewest > most:
                    continue
                priced = self._saving(members, self._bought(left, table) or {})
                if priced is not None and priced.wanted:
                    proposed_sets[size] = priced
        return list(proposed_sets.values())

    def _wasted_most(self, candidate: Candidate) -> tuple[object, ...]:
        """Return the sort key of nodes: those with the most unused money first."""
        wasted = self._price_of(candidate) * (1 - min(1.0, candidate.share))
        return (-wasted, *moves_rank(candidate.moving), candidate.node.name)

    def _price_of(self, candidate: Candidate) -> int:
        return self._context.view.offers[candidate.status.key].nano_usd_per_hour

    def _offers(self, pool: Sequence[Candidate]) -> OfferTable:
        """Return what may be bought in the sector and region of these nodes."""
        view = self._context.view
        region = pool[0].status.key.region
        usable = [
            status
            for status in view.inventory.fleets
            if status.settings.sector == self._sector
            and status.key.region == region
            and not status.unavailable
            and not status.settings.departing
            and view.offers[status.key].priced
            and unproven_version(view, status.key) is None
            and not self._context.reservation_guard.forbids(status.key)
        ]
        offers = [offer_of(self._builder, status) for status in usable]
        return OfferTable(self._builder.sim, [offer for offer in offers if offer.most > 0])

    def _price(
        self, members: Sequence[Candidate], table: OfferTable
    ) -> Mapping[FleetKey, int] | None:
        """Return the cheapest new nodes for the pods that fit nowhere else.

        None if some are left.
        """
        with self._taken_out(members) as left:
            return self._bought(left, table)

    @contextmanager
    def _taken_out(self, members: Sequence[Candidate]) -> Iterator[Sequence[Want]]:
        """Take the nodes out for the time of the block; yield their pods that fit nowhere else."""
        checkpoint = self._simulator.checkpoint()
        pods: list[Pod] = []
        for member in members:
            self._simulator.take_out(member.node, self._trials.grouped(member))
            pods += member.placed
        yield self._simulator.place_what_fits(grouped(self._context.view, pods))
        self._simulator.undo(checkpoint)

    def _bought(self, left: Sequence[Want], table: OfferTable) -> Mapping[FleetKey, int] | None:
        """Return the cheapest new nodes for these pods; None if some are left over.

        None as well if their rules about each other exceed the search's budget.
        """
        sim = self._builder.sim
        counted = sum([len(sim.feeds(pod_class)) for pod_class, _ in left])
        if counted > self._counted_left // 4:
            return None
        self._counted_left -= counted
        mark = sim.fork()
        limits = purchase_limits(self._builder, self._sector)
        request = PurchaseRequest(
            wants=left, table=table, limits=limits, search_seconds=SEARCH_SECONDS
        )
        bought = buy(sim, request)
        sim.revert(mark)
        if bought.left or bought.over_limits:
            return None
        return Counter(node.key for _, node in bought.rows)

    def _without_rebought(
        self, members: Sequence[Candidate], wanted: Mapping[FleetKey, int]
    ) -> Sequence[Candidate]:
        """Leave out the best used nodes of fleets whose nodes would be rebought, one for one."""
        left = dict(wanted)
        staying: set[str] = set()
        for member in sorted(members, key=lambda c: (-c.share, c.node.name)):
            if left.get(member.status.key, 0) > 0:
                left[member.status.key] -= 1
                staying.add(member.node.name)
        return [each for each in members if each.node.name not in staying]

    def _checked(self, proposed: ProposedSet | None) -> ProposedSet | None:
        """Return the set as it can leave, node by node, whatever the zones of the new nodes."""
        if proposed is None or not proposed.wanted:
            return None
        view, members = self._context.view, proposed.members
        specs = [view.offers[k].row for k, count in proposed.wanted.items() for _ in range(count)]
        zones = max(len(list(in_each_zone(spec))) for spec in specs)
        proposed_set: ProposedSet | None = proposed
        for number in range(zones + 1):
            for spread in (True, False):
                rows = [_in_zone(spec, number) for spec in specs]
                members = self._removals_of(members, rows, spread=spread)
                proposed_set = self._saving(members, proposed.wanted)
                if proposed_set is None:  # it saves no more with fewer nodes
                    return None
        return proposed_set

    def _removals_of(
        self, members: Sequence[Candidate], specs: Sequence[RowSpec], *, spread: bool
    ) -> tuple[Candidate, ...]:
        """Return the nodes that can be removed one after the other once the new ones have joined.

        All nodes of the set have the soft taint by then.

        Args:
            members: The nodes, in order.
            specs: The new nodes.
            spread: Whether pods go where kube-scheduler puts them, or are packed as tightly as
                possible; in reality it is something between.
        """
        simulator, row_of = self._simulator, self._context.view.row_of
        checkpoint, before = simulator.checkpoint(), simulator.tainted
        simulator.tainted = [*before, *(row_of[member.node.name] for member in members)]
        rows = [simulator.add_row(spec) for spec in specs]
        simulator.open(rows)
        able: list[Candidate] = []
        with simulator.closed(member.node.name for member in members):
            for each in members:
                moves = self._trials.leave_with_set(each, rows)
                if moves is not None:
                    if spread:
                        simulator.spread(moves, rows)
                    able.append(each)
        simulator.tainted = before
        simulator.undo(checkpoint)
        return tuple(able)

    def _saving(
        self, members: Sequence[Candidate], wanted: Mapping[FleetKey, int]
    ) -> ProposedSet | None:
        """Return the set if it saves enough for the cost of moving its pods."""
        offers = self._context.view.offers
        before = sum(map(self._price_of, members))
        saving = before - sum(offers[key].nano_usd_per_hour * n for key, n in wanted.items())
        cost = sum(
            move_cost_nano_usd(c.moving, c.status.settings.scale_in.move_cost_usd) for c in members
        )
        least = max(SAVING_NANO_USD_MIN, before * SAVING_PERCENT_MIN // 100, cost)
        if not members or saving < least:
            return None
        ordered = sorted(members, key=lambda c: (*moves_rank(c.moving), c.node.name))
        return ProposedSet(
            members=tuple(ordered), wanted=wanted, saving=saving, worth=saving - cost
        )


def _better(best: ProposedSet | None, found: ProposedSet | None) -> ProposedSet | None:
    """Return the set that is worth more; the first one if equal."""
    if best is None or found is None:
        return best or found
    return found if found.worth > best.worth else best


def _sizes(most: int) -> list[int]:
    """Return the sizes of sets to try: all nodes, then fewer and fewer."""
    found: list[int] = []
    while most > 1:
        found.append(most)
        most = most // 2 if most > SMALL_POOL else min(most - 1, most * 3 // 4)
    return found


def _in_zone(spec: RowSpec, number: int) -> RowSpec:
    """Return the row in the zone of that number; unchanged if there is no such zone."""
    zones = list(in_each_zone(spec))
    return zones[number] if number < len(zones) else spec
