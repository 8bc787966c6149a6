"""New nodes that replace others: a cheaper one if that saves 5 %, or room for a removal.

The first is consolidation, which asks for one node at most. The second is for the pods of nodes
that are to be replaced, and of departing fleets, at any price. The new nodes are asked for first.
The drain begins in a later plan, once they have joined: a drain begins only if it can be finished
(docs/scale-in.md).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from reconciler.model.actions import REPLACEMENT_ASKED, AnnotateNode, PolicyName
from reconciler.model.cluster import Node
from reconciler.model.ids import FleetKey, NodeName
from reconciler.model.text import counted_noun, rfc3339
from reconciler.planner.cost_limits import cost_limits
from reconciler.planner.demand import SectorFinder
from reconciler.planner.disruption.blocker import Blocker
from reconciler.planner.disruption.blockers.move_cost import not_worth_moving
from reconciler.planner.disruption.candidate import Candidate
from reconciler.planner.disruption.disruption_context import DisruptionContext
from reconciler.planner.disruption.drains.actions import annotate
from reconciler.planner.disruption.drains.attempts import Attempts, read_attempts
from reconciler.planner.disruption.replacement.unproven_version import unproven_version
from reconciler.planner.disruption.saving import SAVING_PERCENT_MIN
from reconciler.planner.disruption.simulator.drain_simulator import DrainSimulator
from reconciler.planner.disruption.simulator.relocation import Relocation
from reconciler.planner.fleets.inventory import FleetStatus
from reconciler.planner.money import usd
from reconciler.planner.node_rows import in_each_zone
from reconciler.planner.placement.classes import Group
from reconciler.planner.placement.simulation import RowSpec
from reconciler.planner.reserved_places import BREAKS_RESERVATIONS
from reconciler.planner.view import ClusterView

NEW_NODES_MAX = 8
"""How many nodes may replace one of a departing fleet: the sizes that are left may be small."""
ASKED_MAX = 2
"""After this many nodes that joined and could not take its pods no more are asked for."""
ASKED_FORGOTTEN_AFTER = timedelta(days=1)
"""After this long they may be asked for again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewNodes:
    """New nodes of one fleet that could take the pods of a node."""

    key: FleetKey
    count: int = 1

    @property
    def text(self) -> str:
        """Return the number of nodes and the fleet, for people."""
        return f"{counted_noun(self.count, 'node')} of {self.key.name}"


def asked_for(view: ClusterView, node: Node, version: str = "") -> Attempts | None:
    """Return how often a replacement of the node was asked for, and when last; None if never.

    Args:
        view: The facts.
        node: The node.
        version: The version of the rolling update that asks. Purchases for other versions, or by
            other policies, say nothing about its nodes. Empty for other policies.
    """
    noted = node.annotations.get(REPLACEMENT_ASKED, "")
    found = read_attempts(noted, view.at, ASKED_FORGOTTEN_AFTER)
    return found if found is None or version in {"", found.version} else None


def asked_again(
    view: ClusterView, node: Node, key: FleetKey, policy: PolicyName, version: str = ""
) -> AnnotateNode:
    """Return the annotation that notes one more replacement of the node, of the fleet `key`.

    A purchase by another policy after one by a rolling update keeps the update's count: otherwise
    the two would overwrite each other's counts in turn, and buy without end.
    """
    asked = asked_for(view, node, version)
    noted = Attempts(latest=view.at, count=1, version=version)
    if asked is not None:
        noted = replace(asked, latest=view.at, count=asked.count + 1)
    because = f"a node of {key.name} is asked for in its place"
    return annotate(node, REPLACEMENT_ASKED, str(noted), policy, because)


class Consolidator:
    """Finds what could replace a node.

    Nodes that must go may be replaced at any price; all others only if the config asks for
    consolidation.
    """

    def __init__(self, context: DisruptionContext, simulator: DrainSimulator) -> None:
        self._context = context
        self._simulator = simulator
        self._on = context.view.settings.consolidation
        self._finder = SectorFinder(context.view.settings)
        self._sectors: dict[NodeName, frozenset[str]] = {}

    def cheaper_rows(self, candidate: Candidate, idle: Iterable[NodeName]) -> list[int]:
        """Return the rows of cheaper idle nodes that may take its pods; of all if it must go."""
        if not self._is_replaced(candidate):
            return []
        view = self._context.view
        passing = view.inventory.passing
        return [
            view.row_of[name]
            for name in sorted(idle)
            if name not in view.unequipped
            and name not in passing
            and self._may_stay(view.inventory.fleet_of_node[name])
            and self.is_better(candidate, view.inventory.fleet_of_node[name])
        ]

    def _may_stay(self, key: FleetKey) -> bool:
        """Return whether the fleet may keep all its nodes.

        False above its maximum, as when it departs.
        """
        status = self._context.view.statuses[key]
        return status.max is None or status.joined <= status.max

    def move(
        self, candidate: Candidate, groups: Sequence[Group], more: Sequence[int] = ()
    ) -> Relocation | None:
        """Move the pods to nodes that stay; if they do not fit, also to idle nodes and `more`.

        Args:
            candidate: The node that leaves.
            groups: Its pods.
            more: Further rows that may take them, after all others.
        """
        relocation = self._simulator.move(candidate.node, groups)
        if relocation is None:
            rows = [*self.cheaper_rows(candidate, self._context.waiting), *more]
            relocation = self._simulator.move(candidate.node, groups, rows) if rows else None
        return relocation

    def coming_rows(self, candidate: Candidate) -> list[int]:
        """Return the rows that may replace it, launching or incomplete, reserved for no pod."""
        if not self._is_replaced(candidate):
            return []
        builder = self._context.builder
        view = builder.view
        owners = view.inventory.fleet_of_node
        coming = {row: planned.key for row, planned in builder.planned_nodes.items()}
        coming |= {view.row_of[n]: owners[n] for n in sorted(view.unequipped) if n in owners}
        return [
            row
            for row, key in coming.items()
            if row not in builder.used_rows
            and self._is_proven(candidate, key)
            and self.is_better(candidate, key)
            and self._may_stay(key)
        ]

    def cheaper_fleets(self, candidate: Candidate) -> list[FleetKey]:
        """Return the fleets of its region that may grow by a node for it, the cheapest first."""
        if not self._is_replaced(candidate):
            return []
        view = self._context.view
        cheaper = [s.key for s in view.inventory.fleets if self._is_open(candidate, s)]
        return sorted(cheaper, key=lambda key: (view.offers[key].compared_nano_usd, key))

    def blocker_for(self, candidate: Candidate) -> Blocker | None:
        """Return why a fleet that may have one more node gives none now.

        None if nothing prevents it.
        """
        view = self._context.view
        for status in view.inventory.fleets if self._is_replaced(candidate) else ():
            why = unproven_version(view, status.key, candidate.outdated)
            if why is None and self._context.reservation_guard.forbids(status.key):
                code = "replacement" if candidate.must_go else "consolidation"
                why = Blocker(code, f"it is not replaced now: {BREAKS_RESERVATIONS}")
            if why is not None and self._may_grow(candidate, status):
                return why
        return None

    def is_better(self, candidate: Candidate, key: FleetKey) -> bool:
        """Return whether its pods should rather be on a node of the fleet."""
        if candidate.goes_back_to_spot and not self._context.view.statuses[key].settings.spot:
            return False
        return candidate.must_go or self._saves(candidate, key)

    def is_more_expensive(self, candidate: Candidate, key: FleetKey) -> bool:
        """Return whether consolidation would replace the candidate by a node of the fleet."""
        return self._on and self._saves(candidate, key)

    def might_buy(self, candidate: Candidate, key: FleetKey) -> bool:
        """Return whether one more node of the fleet might be asked for to replace it."""
        status = self._context.view.statuses[key]
        return (
            self._is_open(candidate, status)
            and self.blocker_for_asking_again(candidate, key) is None
        )

    def fits_with_one_more(
        self, candidate: Candidate, groups: Sequence[Group], key: FleetKey
    ) -> bool:
        """Return whether its pods would fit with one more node of the fleet, whatever its zone."""
        spec = self._context.view.offers[key].row
        return all(self._fits_with(candidate, groups, row) for row in [*in_each_zone(spec), spec])

    def _fits_with(self, candidate: Candidate, groups: Sequence[Group], spec: RowSpec) -> bool:
        """Return whether its pods would fit with this new node; nothing is changed."""
        sim = self._context.builder.sim
        mark = sim.fork()
        row = sim.add_row(spec)
        fits = self._simulator.fits(candidate.node, groups, [row], spread=True)
        sim.revert(mark)
        return fits

    def most(self, candidate: Candidate, key: FleetKey) -> int:
        """Return how many new nodes of the fleet may replace the candidate."""
        if not candidate.status.settings.departing:
            return 1
        status, builder = self._context.view.statuses[key], self._context.builder
        room = NEW_NODES_MAX if status.max is None else status.max - builder.size_of(key)
        price = builder.view.offers[key].nano_usd_per_hour
        left = [limit.left for limit in cost_limits(builder, status.settings.sector)]
        paid = [amount // price for amount in left] if price else []
        return max(0, min(NEW_NODES_MAX, room, *paid))

    def ask_for(self, candidate: Candidate, new: NewNodes) -> None:
        """Raise the fleet's target; the candidate counts as one that begins to leave."""
        builder, key = self._context.builder, new.key
        old, price = (
            usd(builder.view.offers[k].nano_usd_per_hour) for k in (candidate.status.key, key)
        )
        because = f"a node at {price} USD/h can take the pods of {candidate.node.name} at {old}"
        policy: PolicyName = "consolidation"
        if candidate.outdated is not None:
            policy = candidate.outdated.policy
            because = f"{candidate.node.name} is replaced: {candidate.because}"
        elif candidate.must_go:
            because = f"{candidate.status.key.name} is being removed, and its pods need places"
        builder.ask_for_replacements(key, new.count, policy, because)
        self.note(candidate, key)
        self._context.non_empty_begun += 1
        self._context.ledger.take_node(candidate.status.key)

    def _is_replaced(self, candidate: Candidate) -> bool:
        """Return whether other nodes may be kept or bought for its pods at all."""
        return self._on or candidate.must_go or candidate.goes_back_to_spot

    def _saves(self, candidate: Candidate, key: FleetKey) -> bool:
        offers = self._context.view.offers
        old, new = offers[candidate.status.key], offers[key]
        if not (old.priced and new.priced):
            return False
        most = old.nano_usd_per_hour * (100 - SAVING_PERCENT_MIN)
        if most <= 0 or new.nano_usd_per_hour * 100 > most:
            return False
        saved = old.nano_usd_per_hour - new.nano_usd_per_hour
        move_cost_usd = candidate.status.settings.scale_in.move_cost_usd
        return not_worth_moving(candidate.moving, saved, move_cost_usd) is None

    def blocker_for_asking_again(self, candidate: Candidate, key: FleetKey) -> Blocker | None:
        """Return why none of the fleet is asked for again to replace it; None if one may be.

        Nodes of this or other fleets have joined to replace it, and it still cannot leave: they
        differ from the plan (for example by a taint that the config does not know), or evictions
        are refused. After `ASKED_MAX` of them no more are asked for within a day.
        """
        view, outdated, version = self._context.view, candidate.outdated, ""
        if outdated is not None and outdated.has_batch:
            version = view.inventory.updates[candidate.status.key].version
        asked = asked_for(view, candidate.node, version)
        if asked is None or asked.count < ASKED_MAX or not self._is_over(asked, key):
            return None
        again = rfc3339(asked.latest + ASKED_FORGOTTEN_AFTER)
        return Blocker(
            "no-destination" if candidate.must_go else "consolidation",
            f"{counted_noun(asked.count, 'node')} came to replace it, and it could not be emptied: "
            f"no more are asked for before {again}",
        )

    def _is_over(self, asked: Attempts, key: FleetKey) -> bool:
        """Return whether a node has joined since, or should have.

        Until then a further request belongs to the same purchase.
        """
        view = self._context.view
        nodes = view.statuses[key].nodes
        came = any(n.created_at is not None and n.created_at > asked.latest for n in nodes)
        wait = timedelta(seconds=view.settings.instance_init_seconds)
        return came or view.at - asked.latest > wait

    def note(self, candidate: Candidate, key: FleetKey) -> None:
        """Note on the node how often one of the fleet was asked for to replace it.

        So a restart forgets nothing. A request before the last one has joined is not counted again.
        """
        view, node = self._context.view, candidate.node
        asked = asked_for(view, node)
        if asked is not None and not self._is_over(asked, key):
            return
        policy: PolicyName = "consolidation"
        if candidate.outdated is not None:
            policy = candidate.outdated.policy
        self._context.builder.change_nodes(asked_again(view, node, key, policy))

    def _is_open(self, candidate: Candidate, status: FleetStatus) -> bool:
        """Return whether one more node of the fleet may be asked for to replace it."""
        if not (self._is_proven(candidate, status.key) and self._may_grow(candidate, status)):
            return False
        return not self._context.reservation_guard.forbids(status.key)

    def _is_proven(self, candidate: Candidate, key: FleetKey) -> bool:
        return unproven_version(self._context.view, key, candidate.outdated) is None

    def _may_grow(self, candidate: Candidate, status: FleetStatus) -> bool:
        """Return whether the fleet may have one more node that serves such pods and is better."""
        return (
            status.key.region == candidate.status.key.region
            and not status.unavailable
            and not status.settings.departing
            and self.is_better(candidate, status.key)
            and (status.max is None or self._context.builder.size_of(status.key) < status.max)
            and status.settings.sector in self.sectors_of(candidate)
            and self._affordable(status)
        )

    def sectors_of(self, candidate: Candidate) -> frozenset[str]:
        """Return the sectors whose fleets could serve all its pods, as for pending pods."""
        name = candidate.node.name
        if name not in self._sectors:
            served = [frozenset(self._finder.served_by(pod.spec)) for pod in candidate.placed]
            self._sectors[name] = served[0].intersection(*served[1:])
        return self._sectors[name]

    def _affordable(self, status: FleetStatus) -> bool:
        """Return whether cost limits allow the old and the new node together for a while."""
        price = self._context.view.offers[status.key].nano_usd_per_hour
        limits = cost_limits(self._context.builder, status.settings.sector)
        return all(price <= limit.left for limit in limits)
