"""Writes Kubernetes Events: why a pod waits or moves, why a node is removed or stays."""

from collections.abc import Iterable, Mapping
from typing import Final

from reconciler.loops.reconcile_loop import CycleReport
from reconciler.loops.reporters.refusal_events import refusal_events
from reconciler.model.actions import (
    AnyAction,
    DeletePod,
    EvictPod,
    SetCapacity,
    TaintNode,
    TerminateInstance,
    UntaintNode,
    begins_drain,
    ends_drain,
)
from reconciler.model.binding import IDENTITY_NAMESPACE, Binding, Verdict
from reconciler.model.ids import NodeName, PodKey
from reconciler.model.outcome import Outcome
from reconciler.model.plan import Kept, Placement, Plan
from reconciler.model.snapshot import Snapshot
from reconciler.planner.disruption.blockers.nodes import TERMINATION_PROTECTED
from reconciler.planner.explain.held import held_in_words
from reconciler.ports.object_events import ObjectEvent, ObjectEvents, pod_event
from reconciler.records.binding import binding_to_json, verdict_line
from reconciler.telemetry.scrubbing import without_account

PODS_MAX: Final = 500
"""How many pods one cycle reports; the next ones follow when these have found a place."""
PASSING: Final = frozenset(
    {
        "consolidation",
        "deleting",
        "drain-cool-off",
        "grace-period",
        "idle-time",
        "in-use",
        "interrupted",
        "max-empty-at-once",
        "max-non-empty-at-once",
        "not-ready",
        "rolling-update",
        "unneeded-time",
    }
)
"""Reasons to keep a node that pass by themselves: no Event is written for them, nor for another
that ends at a known time."""


class EventReporter:
    """Writes Events as a Reporter; do not use it in a dry run.

    Args:
        events: Where they go.
    """

    def __init__(self, events: ObjectEvents) -> None:
        self._events = events
        self._plan: Plan | None = None
        self._verdict: Verdict = "pending"
        self._node_uids: Mapping[NodeName, str] = {}
        self._places: Mapping[PodKey, NodeName | None] = {}
        """Where the pods that the plan moves will go."""

    def plan_made(self, snapshot: Snapshot, plan: Plan) -> None:
        """Write why pods wait and why nodes stay."""
        self._plan = plan
        self._tell_binding(plan.binding)
        self._node_uids = {node.name: node.uid for node in snapshot.cluster.nodes}
        self._places = {p.pod: p.node for p in plan.placements if p.moved_from is not None}
        for event in refusal_events(snapshot, plan, PODS_MAX):
            self._events.emit(event)
        launching = (p for p in plan.placements if p.launching is not None)
        for placement, _ in zip(launching, range(PODS_MAX), strict=False):
            self._events.emit(_launching(placement))
        for held in plan.held:
            if held.node:
                text = f"not removed for now ({held.code}): {held_in_words(held)}"
                self._emit_node(held.node, "RemovalHeld", text, warning=True, about=held.code)
        for kept in plan.kept:
            if not _passes(kept):
                text = f"not removed ({kept.code}): {kept.detail}"
                self._emit_node(kept.node, "NodeKept", text, about=kept.code)

    def action_ended(self, outcome: Outcome) -> None:
        """Write what was done, and which evictions and raises were refused."""
        action = outcome.action
        if outcome.kind == "applied":
            self._applied(action)
        elif isinstance(action, EvictPod) and outcome.kind in {"refused", "failed"}:
            text = f"cannot be moved off {action.node} ({action.policy}) now: {outcome.detail}"
            self._emit_pod(action.pod, "EvictionRefused", text, warning=True)
        elif isinstance(action, SetCapacity) and outcome.kind in {"refused", "failed"}:
            why = without_account(outcome.detail)  # all who see the pods may read these Events
            text = f"fleet {action.fleet} in {action.region} was not raised: {why}"
            for pod in self._waiting_for(action):
                self._emit_pod(pod, "ScaleUpFailed", text, warning=True)

    def cycle_ended(self, report: CycleReport) -> None:
        """Drop the plan."""
        del report
        self._plan = None

    def _tell_binding(self, binding: Binding) -> None:
        """Write an Event on kube-system when this stops or starts to be the fleets' cluster."""
        before, self._verdict = self._verdict, binding.verdict
        if binding.verdict == before or not (binding.contradicted or before == "unproven"):
            return
        self._events.emit(
            ObjectEvent(
                kind="Namespace",
                name=IDENTITY_NAMESPACE,
                uid=binding.cluster_uid,
                reason="ClusterNotProven" if binding.contradicted else "ClusterProven",
                message=verdict_line(binding_to_json(binding)),
                warning=binding.contradicted,
                about=binding.verdict,
            )
        )

    def _applied(self, action: AnyAction) -> None:
        match action:
            case SetCapacity():
                place = f"{action.fleet} in {action.region}"
                change = f"from {action.from_capacity} to {action.to_capacity} nodes"
                text = f"fleet {place} goes {change}: {action.because}"
                for pod in self._waiting_for(action):
                    self._emit_pod(pod, "TriggeredScaleUp", text, about=place)
            case EvictPod() | DeletePod():
                ended = "evicted from" if isinstance(action, EvictPod) else "deleted on"
                text = f"{ended} {action.node} by {action.policy}: {action.because}"
                self._emit_pod(action.pod, "Moved", text + self._destination(action.pod))
            case TaintNode() if begins_drain(action):
                self._emit_node(action.node, "Draining", f"{action.policy}: {action.because}")
            case UntaintNode() if ends_drain(action):
                self._emit_node(action.node, "DrainEnded", f"{action.policy}: {action.because}")
            case TerminateInstance() if action.node is not None:
                text = f"instance {action.instance} is ended by {action.policy}: {action.because}"
                self._emit_node(action.node, "Terminating", text)
            case _:
                pass

    def _placements(self) -> Iterable[Placement]:
        return self._plan.placements if self._plan is not None else ()

    def _waiting_for(self, action: SetCapacity) -> list[PodKey]:
        """Return the pods that the plan puts on the fleet's new nodes."""
        if action.to_capacity <= action.from_capacity:
            return []
        found = (
            placement.pod
            for placement in self._placements()
            if placement.new_node is not None
            and placement.fleet == action.fleet
            and placement.region in {None, action.region}
        )
        return [pod for pod, _ in zip(found, range(PODS_MAX), strict=False)]

    def _destination(self, pod: PodKey) -> str:
        node = self._places.get(pod)
        return "" if node is None else f"; its place is kept on {node}"

    def _emit_pod(
        self, pod: PodKey, reason: str, text: str, *, warning: bool = False, about: str = ""
    ) -> None:
        self._events.emit(pod_event(pod, reason, text, warning=warning, about=about))

    def _emit_node(
        self, node: NodeName, reason: str, text: str, *, warning: bool = False, about: str = ""
    ) -> None:
        self._events.emit(
            ObjectEvent(
                kind="Node",
                name=node,
                uid=self._node_uids.get(node, ""),
                reason=reason,
                message=text,
                warning=warning,
                about=about,
            )
        )


def _passes(kept: Kept) -> bool:
    """Return whether time alone ends the reason. EC2 will most likely refuse an end once more."""
    timed = kept.until is not None and kept.code != TERMINATION_PROTECTED
    return timed or kept.code in PASSING


def _launching(placement: Placement) -> ObjectEvent:
    place = f"{placement.fleet} in {placement.region}" if placement.region else placement.fleet
    text = f"waits for a node of fleet {place} that is launching"
    return pod_event(placement.pod, "WaitingForNode", text, about=str(place))
