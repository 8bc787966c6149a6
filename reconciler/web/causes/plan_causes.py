"""Rules for causes that the plan itself shows: what it leaves out, and which nodes it keeps.

Each yields what one of the shipped alerts is about, so that the status names it too.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from reconciler.loops.reason_words import usual_remedy
from reconciler.model.cluster import NO_RESOURCES
from reconciler.model.ids import Region
from reconciler.model.plan import Held, HeldCode, Plan
from reconciler.model.text import counted_noun, duration
from reconciler.model.unplaceable import ReasonKind, Unplaceable
from reconciler.planner.explain.held import held_in_words
from reconciler.planner.fleets.health import MISSING, SILENT
from reconciler.planner.planning_failure import CODE as PLANNING_FAILED
from reconciler.telemetry.scrubbing import Scrubber
from reconciler.web.causes.cause import BoardMoment, Cause, Rule, first_of
from reconciler.web.unbound_pods import UnboundPod
from reconciler.web.view import View

NO_PROGRESS: Final = "no-progress"
HELD_REMEDIES: Final[Mapping[HeldCode, str]] = {
    "safety-stop": "wait for the next full list of the cluster; `reconciler explain node NODE` says"
    " why the nodes would go",
    "unproven-cluster": "check kube-context and config",
    "clock-skew": "fix time synchronisation",
    "stuck-cap": usual_remedy("fleet-unavailable", "never-joined"),
    "protected": "find out why it does not join, and take the protection from scale-in away",
    "termination-protected": "take the protection from termination away",
    "outage": "look at the nodes' network and kubelets, and at AWS's health page; end dead ones"
    " yourself",
    "unlisted-node": "look at the pod that is named: its node should be listed, or the pod gone",
}
"""What ends each measure that holds nodes."""


def planning_failures(seen: BoardMoment) -> Iterator[Cause]:
    """Yield what plans do without, as planning it fails with a bug."""
    plan = seen.view.plan
    if plan is None:
        return
    if plan.no_removals_because:
        yield Cause(
            kind="planning-failed",
            level="degraded",
            headline="No node is drained or ended",
            detail=Scrubber().text(plan.no_removals_because),
            remedy="report it with `reconciler snapshot`; drain interrupted nodes by hand",
        )
    pods = _refused(plan, PLANNING_FAILED)
    if pods:
        yield Cause(
            kind="planning-failed",
            level="degraded",
            headline=f"Planning fails on {counted_noun(len(pods), 'pod')}",
            detail=Scrubber().text(_first_of(pods, PLANNING_FAILED, " ")),
            remedy="report it with `reconciler snapshot`; all other pods are served",
        )


def halted_updates(seen: BoardMoment) -> Iterator[Cause]:
    """Yield rolling updates whose new nodes do not work."""
    for update in seen.view.plan.updates if seen.view.plan is not None else ():
        if update.state == "halted":
            yield Cause(
                kind="update-halted",
                level="degraded",
                headline=f"Rolling update of {update.fleet} in {update.region} is halted",
                detail=f"launch template version {update.version}: {update.because}",
                remedy="fix the launch template, or let it go on with `resume-update`; the old"
                " nodes serve meanwhile",
            )


def resting_updates(seen: BoardMoment) -> Iterator[Cause]:
    """Yield rolling updates whose new nodes are not used, as old ones cannot be emptied."""
    for update in seen.view.plan.updates if seen.view.plan is not None else ():
        if update.state == "resting":
            yield Cause(
                kind="update-rests",
                level="limited",
                headline=f"Rolling update of {update.fleet} in {update.region} rests",
                detail=f"launch template version {update.version}: {update.because}",
                remedy="read the Events `EvictionRefused` of these nodes' pods (a webhook, a policy"
                " or a budget), and look for taints of new nodes that the config does not know;"
                " `resume-update` ends the rest",
            )


def held_nodes(seen: BoardMoment) -> Iterator[Cause]:
    """Yield nodes and instances that would go, by the safety measure that holds them."""
    found: dict[HeldCode, list[Held]] = {}
    for each in seen.view.plan.held if seen.view.plan is not None else ():
        found.setdefault(each.code, []).append(each)
    for code, held in sorted(found.items()):
        names = first_of(each.node or f"instance {each.instance}" for each in held)
        verb, each_one = ("is", "it") if len(held) == 1 else ("are", "each")
        yield Cause(
            kind="nodes-held",
            level="limited",
            headline=f"{counted_noun(len(held), 'node')} {verb} held ({code})",
            detail=f"{names}: {each_one} would go, but {held_in_words(held[0])}",
            remedy=HELD_REMEDIES[code],
        )


def no_progress(seen: BoardMoment) -> Iterator[Cause]:
    """Yield pods for which nothing is bought any more, as new nodes did not help them."""
    plan = seen.view.plan
    if plan is None or not plan.quarantined:
        return
    pods = _refused(plan, NO_PROGRESS)
    yield Cause(
        kind="no-progress",
        level="limited",
        headline=f"New nodes do not help {counted_noun(plan.quarantined, 'kind')} of pods",
        detail=_first_of(pods, NO_PROGRESS, ": ") if pods else "",
        remedy=usual_remedy(NO_PROGRESS),
    )


def not_bound(seen: BoardMoment) -> Iterator[Cause]:
    """Yield pods that kube-scheduler does not bind although a node that exists has room."""
    unbound = _without_awaited_devices(seen.view)
    if unbound:
        first = unbound[0]
        more = f" (and {len(unbound) - 1} more)" if len(unbound) > 1 else ""
        lasted = duration(first.lasted)
        yield Cause(
            kind="not-bound",
            level="limited",
            headline=f"kube-scheduler does not bind {counted_noun(len(unbound), 'pod')}",
            detail=f"{first.pod}: {first.node} has had room for it for {lasted}{more}",
            remedy="`kubectl describe pod` has kube-scheduler's reason; no node is bought for it",
        )


def _without_awaited_devices(view: View) -> list[UnboundPod]:
    """Return the unbound pods without those whose node does not offer yet what they request.

    Plans expect the devices of new nodes, whose plugins register minutes after the kubelet.
    """
    if not view.unbound or view.snapshot is None:
        return list(view.unbound)
    cluster, asked = view.snapshot.cluster, {unbound_pod.pod for unbound_pod in view.unbound}
    requests = {pod.key: pod.spec.requests for pod in cluster.pods if pod.key in asked}
    offered = {node.name: node.allocatable for node in cluster.nodes}
    return [
        unbound_pod
        for unbound_pod in view.unbound
        if all(
            offered.get(unbound_pod.node, NO_RESOURCES).get(name)
            for name in requests.get(unbound_pod.pod, NO_RESOURCES)
        )
    ]


def below_minimum(seen: BoardMoment) -> Iterator[Cause]:
    """Yield fleets with fewer nodes than their minimum that EC2 gives nothing.

    Those that EC2 does not have (`missing_minima`), and those of regions that do not answer, are
    reported elsewhere.
    """
    plan = seen.view.plan
    short = [
        fleet
        for fleet in (plan.fleets if plan is not None else ())
        if fleet.unavailable and fleet.joined < fleet.min and fleet.state not in {MISSING, SILENT}
    ]
    if short:
        nodes = sum(fleet_plan.min - fleet_plan.joined for fleet_plan in short)
        yield Cause(
            kind="below-minimum",
            level="limited",
            headline=f"{counted_noun(nodes, 'node')} of min_capacity {_do(nodes)} not come",
            detail=first_of((f"{f.fleet} in {f.region}: {f.unavailable}" for f in short), "; "),
            remedy="`reconciler explain fleet NAME` says more",
        )


def missing_minima(seen: BoardMoment) -> Iterator[Cause]:
    """Yield fleets with a minimum that EC2 does not have, though no pod waits for them.

    Their nodes may run on; EC2 replaces none of them.
    """
    plan = seen.view.plan
    if plan is None:
        return
    waiting = _waiting_for(plan, "missing")
    gone = [
        f"{fleet.fleet} in {fleet.region} (min_capacity {fleet.min})"
        for fleet in plan.fleets
        if fleet.state == MISSING and fleet.min and (fleet.fleet, fleet.region) not in waiting
    ]
    if gone:
        verb = "is" if len(gone) == 1 else "are"
        yield Cause(
            kind="fleet-missing",
            level="limited",
            headline=f"{counted_noun(len(gone), 'fleet')} with min_capacity {verb} missing",
            detail=f"EC2 does not have {first_of(gone)}",
            remedy=usual_remedy("fleet-unavailable", "missing"),
        )


def failing_fleets(seen: BoardMoment) -> Iterator[Cause]:
    """Yield fleets whose instances become no usable nodes, though no pod waits for them.

    Those with pods that wait, and those below their minimum, are reported elsewhere.
    """
    plan = seen.view.plan
    if plan is None:
        return
    waiting = _waiting_for(plan, "never-joined")
    failing = [
        f"{fleet.fleet} in {fleet.region}: {fleet.unavailable}"
        for fleet in plan.fleets
        if fleet.unavailable_kind == "never-joined"
        and fleet.joined >= fleet.min
        and (fleet.fleet, fleet.region) not in waiting
    ]
    if failing:
        yield Cause(
            kind="fleet-unavailable",
            level="limited",
            headline=f"Instances of {counted_noun(len(failing), 'fleet')} become no usable nodes",
            detail=first_of(failing, "; "),
            remedy=usual_remedy("fleet-unavailable", "never-joined"),
        )


def _waiting_for(plan: Plan, kind: ReasonKind) -> set[tuple[str, Region]]:
    """Return the fleets for which pods wait, by what is the matter with these."""
    found = (reason for reasons, _ in plan.refusals() for reason in reasons)
    return {(reason.fleet, reason.region) for reason in found if reason.kind == kind}


def _do(count: int) -> str:
    return "does" if count == 1 else "do"


def _refused(plan: Plan, code: str) -> list[Unplaceable]:
    """Return the pods of which a reason has this code."""
    return [pod for pod in plan.unplaceable if any(reason.code == code for reason in pod.reasons)]


def _first_of(pods: list[Unplaceable], code: str, between: str) -> str:
    """Return why the first one waits, and in how many other namespaces some do."""
    first = pods[0]
    detail = next(reason.detail for reason in first.reasons if reason.code == code)
    more = len({pod.pod.namespace for pod in pods}) - 1
    text = f"{first.pod}{between}{detail}"
    return f"{text}; also in {counted_noun(more, 'more namespace')}" if more else text


PLAN_CAUSES: Final[tuple[Rule, ...]] = (
    halted_updates,
    resting_updates,
    no_progress,
    not_bound,
    below_minimum,
    missing_minima,
    failing_fleets,
    held_nodes,
)
"""Those that come after the other causes of their level."""
