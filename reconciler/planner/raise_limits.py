"""How far targets may rise for pods and headroom in one plan and within an hour.

`max_hourly_usd` limits what may run, but is often not set. These limits always apply
(docs/failures.md): a template with a wrong number of replicas, or a tenant who asks for thousands
of pods, must not become a bill before somebody has looked.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from reconciler.model.plan import NewNodes
from reconciler.model.saved_state import SavedRaise
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.money import NANO, nano_usd
from reconciler.planner.view import ClusterView

HOUR = timedelta(hours=1)
RAISES_TOGETHER = timedelta(minutes=5)
"""Raises within this time are noted as one: an hour is some dozen entries on the Lease."""

TIMES_RUNNING = 10
"""Without a limit in the config a plan may raise targets tenfold: a burst of batch work does,
and beyond that somebody should look."""
NODES_MIN, NODES_FROM_NOTHING = 1_000, 5_000
"""How many nodes one plan may ask for in any case: while something runs, and while nothing does,
as when a cluster is new or comes back after a loss. 10,000 pods that must not share nodes, or
all 8,152 of a published cluster trace, ask for about 2,500 nodes at once
(docs/benchmarks.md)."""
NANO_USD_MIN, NANO_USD_FROM_NOTHING = 1_000 * NANO, 5_000 * NANO
"""What the nodes of one plan may cost per hour in any case: while something runs, and while
nothing does."""
CYCLES_PER_HOUR = 2
"""How many times the limit of one plan targets may rise within an hour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RaiseLimit:
    """One limit, and what is used of it."""

    key: str
    """Its key under `raise_limits`."""
    most: int
    """In nodes, or in nano-USD per hour."""
    used: int
    money: bool
    eases_at: datetime | None = None
    """When the first raise of the last hour stops counting; None for the limit of one plan."""

    @property
    def left(self) -> int:
        """Return by how much targets may still rise."""
        return max(0, self.most - self.used)

    def more(self, node_nano_usd: int) -> int:
        """Return how much of it one node at this price takes."""
        return node_nano_usd if self.money else 1

    def below_one_node(self, node_nano_usd: int) -> bool:
        """Return whether not even one node at this price is within it, in any plan."""
        return self.most < self.more(node_nano_usd)


def recent_raises(raises: Sequence[SavedRaise], at: datetime) -> tuple[SavedRaise, ...]:
    """Return the raises that still count; one in the future, by another clock, counts as now."""
    known = sorted((replace(r, at=min(r.at, at)) for r in raises), key=lambda r: r.at)
    return tuple(r for r in known if at - r.at < HOUR + RAISES_TOGETHER)


def with_raise(raises: Sequence[SavedRaise], added: SavedRaise) -> tuple[SavedRaise, ...]:
    """Return the raises with another one, merged with those of the last minutes."""
    if added.nodes <= 0:
        return tuple(raises)
    last = raises[-1] if raises else None
    if last is None or added.at - last.at >= RAISES_TOGETHER:
        return (*raises, added)
    together = replace(
        last,
        nodes=last.nodes + added.nodes,
        nano_usd_per_hour=last.nano_usd_per_hour + added.nano_usd_per_hour,
    )
    return (*raises[:-1], together)


def ran_before(view: ClusterView) -> tuple[int, int]:
    """Return how many nodes existed or were asked for before this plan, and their cost."""
    fleets = view.inventory.fleets
    sizes = [(max(s.current, s.joined), view.offers[s.key].nano_usd_per_hour) for s in fleets]
    return sum(size for size, _ in sizes), sum(size * price for size, price in sizes)


def raise_limits(builder: PlanBuilder) -> tuple[RaiseLimit, ...]:
    """Return the limits as they stand in this plan; empty if the settings have none."""
    view = builder.view
    settings = view.settings.raise_limits
    if settings is None:
        return ()
    raised = recent_raises(view.snapshot.cluster.raises, view.at)
    nodes_hour = sum(r.nodes for r in raised)
    usd_hour = sum(r.nano_usd_per_hour for r in raised)
    nodes_now = sum(builder.purchases.nodes.values())
    usd_now = sum(
        count * view.offers[key].nano_usd_per_hour for key, count in builder.purchases.nodes.items()
    )
    first = (raised[0].nodes_before, raised[0].nano_usd_before) if raised else ran_before(view)
    nodes_before, usd_before = first
    nodes = _at_least(nodes_before, nodes_before, (NODES_MIN, NODES_FROM_NOTHING))
    money = _at_least(nodes_before, usd_before, (NANO_USD_MIN, NANO_USD_FROM_NOTHING))
    eases_at = raised[0].at + HOUR + RAISES_TOGETHER if raised else None
    cycle_usd, hour_usd = settings.hourly_usd_per_cycle, settings.hourly_usd_per_hour
    return (
        RaiseLimit(
            key="nodes_per_cycle",
            most=_stated(settings.nodes_per_cycle, nodes),
            used=nodes_now,
            money=False,
        ),
        RaiseLimit(
            key="nodes_per_hour",
            most=_stated(settings.nodes_per_hour, CYCLES_PER_HOUR * nodes),
            used=nodes_now + nodes_hour,
            money=False,
            eases_at=eases_at,
        ),
        RaiseLimit(
            key="hourly_usd_per_cycle",
            most=_stated(None if cycle_usd is None else nano_usd(cycle_usd), money),
            used=usd_now,
            money=True,
        ),
        RaiseLimit(
            key="hourly_usd_per_hour",
            most=_stated(None if hour_usd is None else nano_usd(hour_usd), CYCLES_PER_HOUR * money),
            used=usd_now + usd_hour,
            money=True,
            eases_at=eases_at,
        ),
    )


def _at_least(nodes_before: int, amount: int, least: tuple[int, int]) -> int:
    """Return the limit without one in the config: ten times what ran, or the minimum."""
    something, nothing = least
    return max(nothing if nodes_before <= 0 else something, TIMES_RUNNING * amount)


def _stated(stated: int | None, otherwise: int) -> int:
    return otherwise if stated is None else stated


def exhausted(limits: Sequence[RaiseLimit], node_nano_usd: int) -> RaiseLimit | None:
    """Return the limit that does not allow one more node at this price; None if all do."""
    return next((limit for limit in limits if limit.left < limit.more(node_nano_usd)), None)


def new_nodes_of(builder: PlanBuilder) -> tuple[NewNodes, ...]:
    """Return by how much this plan raises targets for pods and headroom, by fleet."""
    return tuple(
        NewNodes(
            fleet=key.name,
            region=key.region,
            nodes=count,
            nano_usd_per_hour=count * builder.view.offers[key].nano_usd_per_hour,
        )
        for key, count in sorted(builder.purchases.nodes.items())
        if count
    )
