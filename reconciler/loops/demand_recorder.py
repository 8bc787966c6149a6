"""Tells a log what came, changed and ended since the last plan: demand as simulations read it."""

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from typing import TypeVar

from reconciler.loops.reconcile_loop import CycleReport
from reconciler.model.cluster import DaemonSet, Owner, Pod, PodDisruptionBudget
from reconciler.model.demand import (
    BudgetDemand,
    ControllerDemand,
    DemandLine,
    FleetFact,
    PodDemand,
    PodEnd,
)
from reconciler.model.outcome import Outcome
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from reconciler.ports.demand_log import DemandLog
from reconciler.records.demand import encode_line

Value = TypeVar("Value")
Known = dict[str, Value]


class DemandRecorder:
    """A reporter that writes demand down; it never waits and changes nothing.

    A pod is named by its UID; pods of DaemonSets and static pods are left out, as they come with
    nodes. Each day begins with everything that is there, so that its file can be read alone.

    Args:
        log: Where lines go. What it does not take is told again with the next plan.
        keep_seconds: How long lines are kept: older pods are told as created so long ago.
    """

    def __init__(self, log: DemandLog, keep_seconds: float) -> None:
        self._log = log
        self._keep = timedelta(seconds=keep_seconds)
        self._pods: Known[Pod] = {}
        self._daemon_sets: Known[DaemonSet] = {}
        self._budgets: Known[PodDisruptionBudget] = {}
        self._fleets: Known[tuple[int, int]] = {}
        self._day: date | None = None

    def plan_made(self, snapshot: Snapshot, plan: Plan) -> None:
        """Write down how the snapshot differs from the one before."""
        at = snapshot.at
        fresh = self._day != at.date()
        if fresh:
            self._begin_day()
        pods = {pod.key.uid: pod for pod in snapshot.cluster.pods if _asked_for(pod)}
        daemon_sets = {f"{d.namespace}/{d.name}": d for d in snapshot.cluster.daemon_sets}
        budgets = {f"{b.namespace}/{b.name}": b for b in snapshot.cluster.budgets}
        budgets = {name: each for name, each in budgets.items() if not each.unreadable}
        fleets = {f.fleet: (f.target, f.joined) for f in plan.fleets}
        lines = [
            *self._new_pods(at, pods, everything=fresh),
            *self._ended_pods(at, pods, snapshot.cluster.pods),
            *self._changed_daemon_sets(at, daemon_sets),
            *self._changed_budgets(at, budgets),
            *(
                FleetFact(at=at, fleet=name, target=target, joined=joined)
                for name, (target, joined) in fleets.items()
                if self._fleets.get(name) != (target, joined)
            ),
        ]
        if lines and not self._log.append(at, b"".join(encode_line(line) for line in lines)):
            return
        self._day = at.date()
        self._pods, self._daemon_sets = pods, daemon_sets
        self._budgets, self._fleets = budgets, fleets

    def action_ended(self, outcome: Outcome) -> None:
        """Do nothing: an action is no demand."""

    def cycle_ended(self, report: CycleReport) -> None:
        """Do nothing: the plan was told already."""

    def _begin_day(self) -> None:
        """Forget what was told, except pods: those that ended meanwhile are still to be told."""
        self._daemon_sets, self._budgets, self._fleets = {}, {}, {}

    def _new_pods(
        self, at: datetime, pods: Known[Pod], *, everything: bool
    ) -> Iterator[DemandLine]:
        oldest = at - self._keep
        for uid, pod in pods.items():
            if everything or uid not in self._pods:
                yield _pod_demand(max(pod.created_at or at, oldest), pod)

    def _ended_pods(
        self, at: datetime, pods: Known[Pod], seen: tuple[Pod, ...]
    ) -> Iterator[DemandLine]:
        gone = self._pods.keys() - pods.keys()
        finished = {pod.key.uid: pod for pod in seen if pod.finished} if gone else {}
        for uid in sorted(gone):
            yield _pod_end(at, uid, finished.get(uid))

    def _changed_daemon_sets(
        self, at: datetime, daemon_sets: Known[DaemonSet]
    ) -> Iterator[DemandLine]:
        for name, each in daemon_sets.items():
            if self._daemon_sets.get(name) != each:
                owner = Owner(kind="DaemonSet", name=each.name, uid="")
                yield ControllerDemand(
                    at=at, controller=owner, namespace=each.namespace, spec=each.spec
                )
        for name in sorted(self._daemon_sets.keys() - daemon_sets.keys()):
            gone = self._daemon_sets[name]
            owner = Owner(kind="DaemonSet", name=gone.name, uid="")
            yield ControllerDemand(at=at, controller=owner, namespace=gone.namespace, deleted=True)

    def _changed_budgets(
        self, at: datetime, budgets: Known[PodDisruptionBudget]
    ) -> Iterator[DemandLine]:
        for name, each in budgets.items():
            known = self._budgets.get(name)
            if known is None or _rule_of(known) != _rule_of(each):
                yield _budget_demand(at, each)
        for name in sorted(self._budgets.keys() - budgets.keys()):
            gone = self._budgets[name]
            yield BudgetDemand(
                at=at, id=gone.name, namespace=gone.namespace, min_available=0, deleted=True
            )


def _asked_for(pod: Pod) -> bool:
    """Whether it asks for room: of its own, not with a node, and not before it is let go."""
    waits = pod.gated and pod.node_name is None
    return not (pod.daemon or pod.mirror or pod.finished or pod.unreadable or waits)


def _pod_demand(at: datetime, pod: Pod) -> PodDemand:
    return PodDemand(
        at=at,
        id=pod.key.uid,
        spec=pod.spec,
        namespace=pod.key.namespace,
        controller=pod.owner,
        labels=pod.labels,
        annotations=pod.annotations,
    )


def _pod_end(at: datetime, uid: str, finished: Pod | None) -> PodEnd:
    """By itself when it was seen as finished; else somebody deleted it."""
    if finished is None or finished.started_at is None or finished.finished_at is None:
        return PodEnd(at=at, id=uid)
    ran = (finished.finished_at - finished.started_at).total_seconds()
    return PodEnd(at=finished.finished_at, id=uid, ran_seconds=max(0.0, ran))


def _rule_of(budget: PodDisruptionBudget) -> tuple[object, int]:
    return budget.selector, budget.desired_healthy


def _budget_demand(at: datetime, budget: PodDisruptionBudget) -> BudgetDemand:
    """The API server's own count of the pods that must stay, as percentages are worked out."""
    return BudgetDemand(
        at=at,
        id=budget.name,
        namespace=budget.namespace,
        selector=budget.selector,
        min_available=budget.desired_healthy,
    )
