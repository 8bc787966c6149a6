"""Groups pending pods by their workload: ten thousand pods become a handful of entries.

This has only what a snapshot and its plan say; callers decide how to show it.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from reconciler.model.cluster import Pod
from reconciler.model.ids import PodKey, Region
from reconciler.model.plan import Placement, Plan
from reconciler.model.snapshot import Snapshot
from reconciler.model.top_controller import cron_job_of, deployment_of
from reconciler.model.unplaceable import Reason, ReasonKind

PendingState = Literal["unplaceable", "new-node", "launching", "existing-node"]
"""What a pending pod waits for: nothing that will come, a node to be bought, a node that is
launching, or kube-scheduler."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Workload:
    """Names what made a pod: its top controller."""

    namespace: str
    kind: str
    """`Deployment` and `CronJob`, not the ReplicaSet and Job below them; `Pod` for a pod without a
    controller."""
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """States one reason of a workload's pods, and how many pods have it."""

    code: str
    detail: str
    fleets: tuple[tuple[str, Region], ...]
    """Fleets that give the reason, by name and region."""
    pods: int
    kind: ReasonKind = ""


@dataclass(slots=True, kw_only=True)
class Pending:
    """Joins the pending pods of one workload."""

    workload: Workload
    pods: int = 0
    oldest_at: datetime | None = None
    """When the oldest of them was created; None when no creation time is known."""
    states: Counter[PendingState] = field(default_factory=Counter)
    fleets: Counter[str] = field(default_factory=Counter)
    """Pods that wait for a node of each fleet, launching or to be bought."""
    example: PodKey | None = None
    """One of its pods, an unplaceable one if there is one."""
    refusals: tuple[Refusal, ...] = ()
    """Why pods are unplaceable; the reason of the most pods first."""

    @property
    def state(self) -> PendingState:
        """Return the worst of the pods' states."""
        order: tuple[PendingState, ...] = ("unplaceable", "new-node", "launching", "existing-node")
        return next(each for each in order if self.states[each])


def workload_of(pod: Pod) -> Workload:
    """Return the workload that made a pod."""
    owner = pod.owner
    if owner is None:
        return Workload(namespace=pod.key.namespace, kind="Pod", name=pod.key.name)
    kind, name = owner.kind, owner.name
    if (deployment := deployment_of(owner, pod.labels)) is not None:
        kind, name = "Deployment", deployment
    elif (cron_job := cron_job_of(owner)) is not None:
        kind, name = "CronJob", cron_job
    return Workload(namespace=pod.key.namespace, kind=kind, name=name)


_ReasonKey = tuple[str, str, ReasonKind]
"""Code, detail and kind of a reason."""
_Refused = dict[int, tuple[tuple[Reason, ...], int]]
"""Reasons of a workload's pods and how many pods have them, by identity: pods of one shape share
the reasons of all fleets, and so do the workloads of one shape their refusals."""


def pending_by_workload(snapshot: Snapshot, plan: Plan) -> tuple[Pending, ...]:
    """Return the pending pods of the plan by workload: the worst first, then the most pods."""
    waiting = {pod.key: pod for pod in snapshot.cluster.pods if pod.node_name is None}
    found: dict[Workload, Pending] = {}
    refused: dict[Workload, _Refused] = {}
    for key, state, reasons, fleet in _pending(plan):
        workload = _workload(key, waiting.get(key))
        pending = found.setdefault(workload, Pending(workload=workload))
        _count(pending, key, state, waiting.get(key))
        if fleet is not None:
            pending.fleets[fleet] += 1
        if reasons:
            counts = refused.setdefault(workload, {})
            counts[id(reasons)] = reasons, counts.get(id(reasons), (reasons, 0))[1] + 1
    known: dict[tuple[tuple[int, int], ...], tuple[Refusal, ...]] = {}
    for workload, counts in refused.items():
        shape = tuple([(number, pods) for number, (_, pods) in counts.items()])
        if shape not in known:
            known[shape] = _refusals(counts)
        found[workload].refusals = known[shape]
    return tuple(sorted(found.values(), key=_urgency))


def _pending(
    plan: Plan,
) -> Iterator[tuple[PodKey, PendingState, tuple[Reason, ...], str | None]]:
    """Yield every pending pod with what it waits for, why it is refused, and whose node it gets."""
    for unplaceable in plan.unplaceable:
        yield unplaceable.pod, "unplaceable", unplaceable.reasons, None
    for placement in plan.placements:
        if placement.moved_from is None:
            yield placement.pod, _state_of(placement), (), placement.fleet


def _state_of(placement: Placement) -> PendingState:
    if placement.new_node is not None:
        return "new-node"
    return "launching" if placement.launching is not None else "existing-node"


def _workload(key: PodKey, pod: Pod | None) -> Workload:
    if pod is None:  # deleted since the plan was made
        return Workload(namespace=key.namespace, kind="Pod", name=key.name)
    return workload_of(pod)


def _count(pending: Pending, key: PodKey, state: PendingState, pod: Pod | None) -> None:
    if pending.example is None or (state == "unplaceable" and not pending.states[state]):
        pending.example = key
    pending.pods += 1
    pending.states[state] += 1
    created_at = None if pod is None else pod.created_at
    if created_at is not None and (pending.oldest_at is None or created_at < pending.oldest_at):
        pending.oldest_at = created_at


def _refusals(counts: _Refused) -> tuple[Refusal, ...]:
    """Return the reasons joined over fleets: the same reason of six fleets is one entry."""
    pods: Counter[_ReasonKey] = Counter()
    fleets: dict[_ReasonKey, set[tuple[str, Region]]] = {}
    for reasons, count in counts.values():
        for reason in {(each.code, each.detail, each.kind) for each in reasons}:
            pods[reason] += count
        for each in reasons:
            named = fleets.setdefault((each.code, each.detail, each.kind), set())
            if each.fleet:
                named.add((each.fleet, each.region))
    ordered = sorted(pods, key=lambda reason: (-pods[reason], -len(fleets[reason]), reason))
    return tuple(
        Refusal(
            code=reason[0],
            detail=reason[1],
            kind=reason[2],
            fleets=tuple(sorted(fleets[reason])),
            pods=pods[reason],
        )
        for reason in ordered
    )


def _urgency(pending: Pending) -> tuple[bool, int, Workload]:
    return (not pending.states["unplaceable"], -pending.pods, pending.workload)
