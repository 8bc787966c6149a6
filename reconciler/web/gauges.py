"""Gauges of the capacity loop, read from the status board at each scrape."""

from collections.abc import Iterable, Iterator
from typing import get_args

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from reconciler.gitops.repository.status import STAGES, ClusterProgress
from reconciler.model.binding import Binding
from reconciler.model.binding import Verdict as BindingVerdict
from reconciler.model.plan import UPDATE_STATES, FleetPlan, Plan
from reconciler.telemetry import metrics as names
from reconciler.web.board import StatusBoard
from reconciler.web.causes.cause import CauseKind
from reconciler.web.overview import fleet_rows
from reconciler.web.status import pending_pods, unplaceable_by_bounded_code
from reconciler.web.verdict import Verdict, verdict_of
from reconciler.web.view import View


class BoardCollector(Collector):
    """Gauges of one moment: a scrape never sees half a plan."""

    def __init__(self, board: StatusBoard) -> None:
        self._board = board

    def collect(self) -> Iterable[Metric]:
        """Yield the gauges."""
        view = self._board.view
        leads = self._board.leadership.leads
        yield _gauge(names.ERRORS_IN_A_ROW, "Failed cycles in a row.", view.errors_in_a_row)
        yield _gauge(
            names.CONFIG_VALID,
            "1 while the newest config, on disk or at the head of the branch, is in force.",
            not view.config.faults,
        )
        commit = GaugeMetricFamily(
            names.CONFIG_COMMIT,
            "1 for the commit whose config is in force; none while a file is.",
            labels=["commit"],
        )
        if view.config.commit:
            commit.add_metric([view.config.commit], 1)
        yield commit
        yield _gauge(names.DRY_RUN, "1 while nothing is changed.", view.config.dry_run)
        yield _gauge(names.LEADER, "1 while this replica acts, 0 while it stands by.", leads)
        age = self._board.success_age_seconds()
        yield _gauge(names.LAST_SUCCESS_AGE, "Since the last cycle without an error.", age)
        pause = view.config.sleep_seconds
        yield _gauge(names.LONGEST_PAUSE, "Longest pause between two cycles.", pause)
        yield _of_trouble(verdict_of(self._board))
        if view.plan is not None:
            yield from _of_plan(view.plan)
            yield from _of_requested(view)
        yield _of_progress(view.progress)
        turned = self._board.second_loop_success_age_seconds()
        if turned is not None:
            text = "Since the second loop's last turn that did not fail."
            yield _gauge(names.GITOPS_SUCCESS_AGE, text, turned)
        drift = GaugeMetricFamily(
            names.FLEET_DRIFT,
            "1 while a fleet is not what the config says.",
            labels=["fleet", "region", "kind"],
        )
        for live_drift in view.drift:
            drift.add_metric([live_drift.fleet, live_drift.region, live_drift.kind], 1)
        yield drift


def _of_trouble(verdict: Verdict) -> Metric:
    """Return every kind, also those that are 0, so that an alert on a misspelt kind is noticed."""
    found = {cause.kind for cause in verdict.causes}
    trouble = GaugeMetricFamily(
        names.TROUBLE, "1 while the status page names a cause of this kind.", labels=["kind"]
    )
    for kind in get_args(CauseKind):
        trouble.add_metric([kind], int(kind in found))
    return trouble


def _of_requested(view: View) -> Iterator[Metric]:
    """Yield EC2's accepted targets, between a plan's target and what has joined."""
    rows = fleet_rows(view)
    yield _of_fleets(
        names.FLEET_REQUESTED,
        "Target that EC2 has accepted.",
        ((row.plan, row.requested) for row in rows),
    )
    cost = sum(row.hourly_usd for row in rows)
    yield _gauge(names.COST_REQUESTED, "Hourly cost of the targets that EC2 has accepted.", cost)


def _of_progress(progress: Iterable[ClusterProgress]) -> Metric:
    stages = GaugeMetricFamily(
        names.GITOPS_STAGE,
        "1 for the stage that the newest config of a cluster has reached.",
        labels=["config", "stage"],
    )
    for cluster_progress in progress:
        for stage in STAGES:
            stages.add_metric(
                [cluster_progress.config, stage], int(stage == cluster_progress.stage)
            )
    return stages


def _of_drifted(plan: Plan) -> Iterator[Metric]:
    drifted = GaugeMetricFamily(
        names.NODES_DRIFTED,
        "Nodes that their fleet would launch otherwise, by reason.",
        labels=["fleet", "region", "reason"],
    )
    for each in plan.drifted:
        drifted.add_metric([each.fleet, each.region, each.reason], each.nodes)
    yield drifted
    updates = GaugeMetricFamily(
        names.ROLLING_UPDATE,
        "1 for the state of a fleet's rolling update; none where none is under way.",
        labels=["fleet", "region", "state"],
    )
    for update in plan.updates:
        for state in UPDATE_STATES:
            updates.add_metric([update.fleet, update.region, state], int(state == update.state))
    yield updates


def _of_waiting(plan: Plan) -> Iterator[Metric]:
    """Yield the numbers of pods without a node."""
    yield _gauge(names.PODS_PENDING, "Pods of ours without a node.", pending_pods(plan))
    unplaceable = GaugeMetricFamily(
        names.PODS_UNPLACEABLE, "Pods that nothing can take, by code.", labels=["code"]
    )
    for code, count in unplaceable_by_bounded_code(plan).items():
        unplaceable.add_metric([code], count)
    yield unplaceable
    yield _gauge(
        names.PODS_PENDING_UNPLACEABLE,
        "Pods that nothing can take, each counted once.",
        len(plan.unplaceable),
    )
    yield _gauge(
        names.PODS_WITHOUT_SECTOR,
        "Pods that wait and are left alone, as they name no sector.",
        plan.pods_without_sector,
    )


def _of_plan(plan: Plan) -> Iterator[Metric]:
    """Yield what a plan shows: what waits, what is held back, and each fleet's numbers."""
    yield from _of_waiting(plan)
    yield _of_binding(plan.binding)
    yield _gauge(
        names.CLOCK_SKEW,
        "How far our clock is ahead of EC2's and the API server's.",
        plan.clock_skew_seconds,
    )
    yield _gauge(
        names.STUCK_ENDS,
        "Instances that never became usable nodes and were ended in the last hour.",
        len(plan.stuck_ends),
    )
    yield from _of_spot(plan)
    yield _of_outdated(plan)
    yield _gauge(
        names.NODES_HELD, "Nodes held although a policy would remove them.", len(plan.held)
    )
    yield _gauge(
        names.INSTANCES_PROTECTED,
        "Instances that EC2 refused to end in the last 24 hours.",
        len(plan.protected_instances),
    )
    yield _gauge(
        names.DEMAND_QUARANTINED,
        "Kinds of pods for which nothing is bought any more.",
        plan.quarantined,
    )
    yield from _of_raises(plan)
    yield _gauge(
        names.ORPHAN_INSTANCES, "Instances with our tags whose fleet is gone.", plan.orphans
    )
    yield from _of_drifted(plan)
    yield from _of_each_fleet(plan)
    yield from _of_cost(plan)
    yield from _of_headroom(plan)


def _of_raises(plan: Plan) -> Iterator[Metric]:
    yield _gauge(
        names.RAISED_NODES,
        "Nodes by which targets were raised for pods and headroom within the last hour.",
        sum(raised.nodes for raised in plan.raises),
    )
    if plan.raise_nodes_left is not None:
        yield _gauge(
            names.RAISE_NODES_LEFT,
            "Nodes that raise_limits still allows to be asked for.",
            plan.raise_nodes_left,
        )


def _of_each_fleet(plan: Plan) -> Iterator[Metric]:
    yield _of_fleets(
        names.FLEET_UNAVAILABLE,
        "1 while a fleet cannot be asked for more.",
        ((f, int(bool(f.unavailable))) for f in plan.fleets),
    )
    yield _of_fleets(
        names.FLEET_REMOVAL_NODES,
        "Nodes left of a fleet whose removal was approved; 0 for fleets that stay.",
        ((f, f.joined if f.removal else 0) for f in plan.fleets),
    )
    yield _of_fleets(
        names.FLEET_TARGET, "Target after the plan.", ((f, f.target) for f in plan.fleets)
    )
    yield _of_fleets(
        names.FLEET_CURRENT, "Target before the plan.", ((f, f.current) for f in plan.fleets)
    )
    yield _of_fleets(names.FLEET_JOINED, "Joined nodes.", ((f, f.joined) for f in plan.fleets))
    yield _of_fleets(
        names.FLEET_LAUNCHING, "Nodes still to join.", ((f, f.launching) for f in plan.fleets)
    )


def _of_cost(plan: Plan) -> Iterator[Metric]:
    cost = plan.cost
    yield _gauge(names.COST_BEFORE, "Hourly cost of the old targets.", cost.hourly_usd_before)
    yield _gauge(names.COST_AFTER, "Hourly cost of the new targets.", cost.hourly_usd_after)
    yield _gauge(
        names.COST_LOWER_BOUND,
        "Hourly cost of what stays, and the least that the new nodes could cost.",
        cost.hourly_usd_lower_bound,
    )
    yield _gauge(names.COST_GAP, "(after - lower bound) / after.", cost.gap)


def _of_spot(plan: Plan) -> Iterator[Metric]:
    yield from _of_interruptions(plan)
    yield from _of_stand_ins(plan)
    nodes, pods = (
        GaugeMetricFamily(name, text, labels=["kind"])
        for name, text in (
            (names.RESCHEDULER_NODES, "Nodes that the spot rescheduler looks at."),
            (names.RESCHEDULER_PODS, "Pods on these nodes, DaemonSets' left out."),
        )
    )
    for node in plan.nodes_by_kind:
        nodes.add_metric([node.kind], node.nodes)
        pods.add_metric([node.kind], node.pods)
    yield nodes
    yield pods


def _of_interruptions(plan: Plan) -> Iterator[Metric]:
    yield _gauge(names.NODES_INTERRUPTED, "Nodes that EC2 takes back now.", len(plan.interrupted))
    yield _gauge(
        names.POOLS_INTERRUPTED,
        "Instance types in zones from which EC2 took spot instances in the last 30 minutes.",
        len(plan.interrupted_pools),
    )


def _of_stand_ins(plan: Plan) -> Iterator[Metric]:
    labels = ["fleet", "region", "spot_fleet"]
    nodes = GaugeMetricFamily(
        names.STAND_INS, "On-demand nodes that stand in for spot nodes.", labels=labels
    )
    extra = GaugeMetricFamily(
        names.STAND_INS_EXTRA_COST, "What these cost more per hour.", labels=labels
    )
    for each in plan.stand_ins:
        of = [each.fleet, each.region, each.instead_of]
        nodes.add_metric(of, each.nodes)
        extra.add_metric(of, each.extra_hourly_usd)
    yield nodes
    yield extra


def _of_headroom(plan: Plan) -> Iterator[Metric]:
    pieces, missing = (
        GaugeMetricFamily(name, text, labels=["sector"])
        for name, text in (
            (names.HEADROOM_PIECES, "Pieces of room that the config asks to keep free."),
            (names.HEADROOM_MISSING, "Those with neither room nor a node on its way."),
        )
    )
    for sector in sorted({headroom_plan.sector for headroom_plan in plan.headroom}):
        headroom_plans = [
            headroom_plan for headroom_plan in plan.headroom if headroom_plan.sector == sector
        ]
        pieces.add_metric([sector], sum(headroom_plan.pieces for headroom_plan in headroom_plans))
        missing.add_metric([sector], sum(headroom_plan.missing for headroom_plan in headroom_plans))
    yield pieces
    yield missing


def _of_outdated(plan: Plan) -> Metric:
    outdated = GaugeMetricFamily(
        names.NODES_OUTDATED, "Nodes that are to be replaced in time.", labels=["reason"]
    )
    for reason in ("rebalance", "drifted", "expired", "spot-reschedule"):
        outdated.add_metric([reason], plan.outdated.get(reason, 0))
    return outdated


def _of_binding(binding: Binding) -> Metric:
    verdicts = GaugeMetricFamily(
        names.CLUSTER_BOUND,
        "1 for the verdict on whether this cluster runs the fleets' instances.",
        labels=["verdict"],
    )
    for verdict in get_args(BindingVerdict):
        verdicts.add_metric([verdict], int(verdict == binding.verdict))
    return verdicts


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, value=float(value))


def _of_fleets(name: str, text: str, values: Iterable[tuple[FleetPlan, int]]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, text, labels=["fleet", "region"])
    for fleet, value in values:
        family.add_metric([fleet.fleet, fleet.region], value)
    return family
