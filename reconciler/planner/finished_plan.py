"""Makes a Plan of what the policies decided: calls with targets, placements, cost, reasons."""

from collections import Counter
from collections.abc import Iterable, Mapping

from reconciler.model.action_order import in_order
from reconciler.model.actions import (
    AnyAction,
    DeleteNode,
    SetCapacity,
    TerminateInstance,
    begins_drain,
)
from reconciler.model.ids import FleetId, NodeName, PodKey
from reconciler.model.placements import Dispatch, Placements
from reconciler.model.plan import Cost, FleetPlan, Kept, Plan, StandIns
from reconciler.model.snapshot import Ignored
from reconciler.model.unplaceable import Reason, Unplaceable
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.clocks import clock_skew
from reconciler.planner.cost_limits import cost_of_targets, extra_nano_usd
from reconciler.planner.disruption.drains.idleness import holds_only_headroom
from reconciler.planner.disruption.limits.unproven_cluster import (
    check_removals,
)
from reconciler.planner.disruption.methods.deschedule import last_descheduled
from reconciler.planner.disruption.methods.interrupted import interrupted_nodes
from reconciler.planner.disruption.resumes import answers_to_resumes
from reconciler.planner.disruption.spot_rules import nodes_by_kind
from reconciler.planner.disruption.update_status import update_status
from reconciler.planner.disruption.waiting_removals import removal_of
from reconciler.planner.fleets.instances.protected_instances import still_protected
from reconciler.planner.fleets.instances.stuck_ends import ends_after
from reconciler.planner.fleets.inventory import FleetStatus
from reconciler.planner.fleets.live_fleet import of_same_name
from reconciler.planner.fleets.notice_outcomes import notice_outcomes
from reconciler.planner.fleets.spot.spot_return import HEADROOM_WAITS
from reconciler.planner.fleets.spot.stand_ins import find_stand_ins
from reconciler.planner.fleets.updates.drift import count_drifted
from reconciler.planner.money import usd
from reconciler.planner.planning_failure import CODE as PLANNING_FAILED
from reconciler.planner.policies.scale_up.places_taken import places_taken_of
from reconciler.planner.raise_limits import (
    new_nodes_of,
    raise_limits,
    ran_before,
    recent_raises,
)
from reconciler.planner.target_check import check_target


def _leaving(action: AnyAction) -> NodeName | None:
    """Return the node that the action ends, or begins to empty voluntarily; None for others."""
    if isinstance(action, TerminateInstance | DeleteNode):
        return action.node
    return action.node if begins_drain(action) and not action.forced else None


def finished(builder: PlanBuilder) -> Plan:
    """Return the plan: actions in the order of their execution, and what explains them."""
    view = builder.view
    check_removals(builder)
    snapshot, settings, inventory = view.snapshot, view.settings, view.inventory
    leaving = {_leaving(action) for action in builder.actions}
    kept = tuple(each for each in builder.kept if each.node not in leaving)
    kept_by_name = {each.node: each for each in kept}
    remembered = builder.purchases.remembered
    return Plan(
        at=snapshot.at,
        cluster=settings.cluster,
        home_region=settings.home_region,
        actions=in_order([*_capacity_actions(builder), *builder.actions]),
        placements=_placements(builder),
        held=tuple(sorted(builder.held)),
        unplaceable=_unplaceable(builder),
        ignored=_ignored(builder),
        fleets=tuple(_fleet_plan(builder, s, kept_by_name) for s in inventory.fleets),
        cost=_cost(builder),
        kept=kept,
        fleet_states=inventory.fleet_states,
        demands=tuple(remembered[key] for key in sorted(remembered)),
        quarantined=len(builder.purchases.quarantined),
        lost_fleets=inventory.orphans.lost_fleets,
        stuck_ends=ends_after(
            snapshot.cluster.stuck_ends, builder.actions, inventory.stuck_nodes, snapshot.at
        ),
        binding=inventory.binding,
        clock_skew_seconds=round(clock_skew(snapshot).total_seconds()),
        raises=recent_raises(snapshot.cluster.raises, view.at),
        interrupted_pools=inventory.interrupted_pools,
        protected_instances=still_protected(snapshot),
        stand_ins=_stand_ins(builder),
        headroom=tuple(builder.headroom),
        new_nodes=new_nodes_of(builder),
        ran_before=ran_before(builder.view),
        raise_nodes_left=min((r.left for r in raise_limits(builder) if not r.money), default=None),
        fleet_of_node=inventory.fleet_of_node,
        leaving=inventory.leaving,
        orphans=len(inventory.orphans.found),
        orphan_nodes=inventory.orphans.nodes,
        interrupted=interrupted_nodes(view),
        outdated=Counter(each.reason for each in inventory.outdated.values()),
        notices=notice_outcomes(
            snapshot, settings, inventory.binding, inventory.fleet_of_node.keys()
        ),
        last_descheduled_at=last_descheduled(builder),
        nodes_by_kind=nodes_by_kind(view),
        drifted=count_drifted(inventory.fleets, inventory.instance_of_node),
        resumes=tuple(answers_to_resumes(view)),
        demanding=view.demand.demanding,
        offered_resources=builder.sim.dimensions.resources,
    )


def _placements(builder: PlanBuilder) -> Placements:
    """Return all reservations in groups; a value per pod is made only when it is read."""
    rows = sorted({row for reservation in builder.reservations for row in reservation.rows})
    places = {row: builder.destination(row) for row in rows}
    dispatches = [
        Dispatch(
            pods=reservation.pods,
            destinations=[places[row] for row in reservation.rows],
            amounts=reservation.amounts,
            moved_from=builder.view.displaced,
        )
        for reservation in builder.reservations
    ]
    return Placements(dispatches, builder.placements)


def _capacity_actions(builder: PlanBuilder) -> Iterable[SetCapacity]:
    """Yield one call per fleet with the final target; terminations lower targets themselves."""
    decremented = Counter(
        (action.fleet, action.region)
        for action in builder.actions
        if isinstance(action, TerminateInstance) and action.decrement
    )
    for status in builder.view.inventory.fleets:
        check_target(builder, status)
        ending = decremented[status.key.name, status.key.region]
        target = builder.targets[status.key] + ending
        if ending and status.max is not None:
            # Nodes that end still count: their replacements are asked for when they do not.
            target = min(target, max(status.max, status.current))
        if target != status.current:
            policy, because = builder.target_reason(status.key)
            taken = places_taken_of(builder, status.key) if target > status.current else None
            yield SetCapacity(
                fleet=status.key.name,
                provider=status.settings.provider,
                id=status.live.id if status.live else FleetId(""),
                region=status.key.region,
                from_capacity=status.current,
                to_capacity=target,
                policy=policy,
                because=because if taken is None else f"{because}: {taken.short}",
                places_taken="" if taken is None else taken.named,
            )


def _unplaceable(builder: PlanBuilder) -> tuple[Unplaceable, ...]:
    """Return all pods that get no place, by name."""
    refused = [*builder.unplaceable, *_without_fleet(builder)]
    return tuple(sorted(refused, key=lambda unplaceable: unplaceable.pod))


def _without_fleet(builder: PlanBuilder) -> Iterable[Unplaceable]:
    """Return the pods for which no fleet was asked: of unknown sectors, or not planned for."""
    view = builder.view
    for pod, named in view.demand.unknown_sector:
        yield _refused(builder, pod, "no-sector", f"names {named}")
    for pod, detail in view.demand.too_complex:
        yield _refused(builder, pod, "too-complex", detail)
    for pod, detail in view.demand.deferred:
        yield _refused(builder, pod, "over-work-budget", detail)
    for pod, detail in view.demand.left_out:
        yield _refused(builder, pod, PLANNING_FAILED, detail)


def _refused(builder: PlanBuilder, pod: PodKey, code: str, detail: str) -> Unplaceable:
    reason = Reason(fleet="", region=builder.view.settings.home_region, code=code, detail=detail)
    return Unplaceable(pod=pod, reasons=(reason,))


def _ignored(builder: PlanBuilder) -> tuple[Ignored, ...]:
    """Return what was left out of the plan: pods, objects of the cluster, and of the cloud."""
    view = builder.view
    cloud = view.snapshot.cloud
    found = [*view.demand.ignored, *view.snapshot.cluster.ignored]
    found += [*(cloud.ignored if cloud else ()), *of_same_name(cloud, view.settings)]
    return tuple(_merged(found))


def _merged(ignored: list[Ignored]) -> list[Ignored]:
    """Return the counts of unused pods, added up per kind."""
    counts: dict[str, int] = {}
    for entry in ignored:
        if entry.code == "unused-kind":
            counts[entry.kind] = counts.get(entry.kind, 0) + entry.count
    rest = {entry for entry in ignored if entry.code != "unused-kind"}
    kinds = {Ignored(code="unused-kind", kind=k, count=n) for k, n in counts.items()}
    return sorted(rest | kinds)


def _fleet_plan(
    builder: PlanBuilder, status: FleetStatus, kept: Mapping[NodeName, Kept]
) -> FleetPlan:
    awaited = max(0, builder.targets[status.key] - status.provided)
    update = builder.view.inventory.updates.get(status.key)
    return FleetPlan(
        fleet=status.key.name,
        region=status.key.region,
        current=status.current,
        joined=status.joined,
        launching=status.launching,
        target=builder.targets[status.key],
        min=status.min,
        max=status.max,
        state=status.state,
        unavailable=status.unavailable,
        unavailable_kind=status.unavailable_kind,
        awaited=0 if status.unavailable else awaited,
        removal=removal_of(builder.view, status, kept),
        update=None if update is None else update_status(builder, update, kept),
        node_usd_per_hour=usd(builder.view.offers[status.key].nano_usd_per_hour),
        rebalances_zones=status.live is not None and status.live.rebalances_zones,
    )


def _stand_ins(builder: PlanBuilder) -> tuple[StandIns, ...]:
    """Return by fleet and spot fleet the nodes that stand in, and what more they cost."""
    view = builder.view
    young_seconds = view.settings.instance_init_seconds
    found = find_stand_ins(view.inventory, view.at, young_seconds)
    counts = Counter((stand_in.key, stand_in.instead_of) for stand_in in found)
    returns = {spot_return.key: spot_return for spot_return in view.spot_returns}
    going = Counter(
        (stand_in.key, stand_in.instead_of)
        for stand_in in found
        if stand_in.instead_of in returns
        and stand_in.node.name in returns[stand_in.instead_of].batch
    )
    holding = {
        (stand_in.key, stand_in.instead_of)
        for stand_in in found
        if holds_only_headroom(builder, stand_in.node)
    }
    waits = {
        (key, spot): returns[spot].waits or (HEADROOM_WAITS if (key, spot) in holding else "")
        for key, spot in counts
        if spot in returns
    }
    return tuple(
        StandIns(
            fleet=key.name,
            region=key.region,
            instead_of=spot.name,
            nodes=nodes,
            extra_hourly_usd=usd(nodes * extra_nano_usd(view.offers[key], view.offers[spot])),
            going_back=going[key, spot],
            waits=waits.get((key, spot), ""),
        )
        for (key, spot), nodes in sorted(counts.items())
    )


def _cost(builder: PlanBuilder) -> Cost:
    view = builder.view
    fleets = view.inventory.fleets
    before = sum(s.current * view.offers[s.key].nano_usd_per_hour for s in fleets)
    after = cost_of_targets(builder, fleets)
    purchases = builder.purchases
    bound = after - (purchases.nano_usd_per_hour - purchases.bound_nano_usd_per_hour)
    return Cost(
        hourly_usd_before=usd(before),
        hourly_usd_after=usd(after),
        hourly_usd_lower_bound=usd(bound),
        gap=round((after - bound) / after, 6) if after else 0.0,
        unpriced=tuple(s.key.name for s in fleets if not view.offers[s.key].priced),
        prices=view.settings.prices,
    )
