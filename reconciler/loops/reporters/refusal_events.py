"""Events about pods that no fleet can run: one per workload, and for some pods of every workload.

With ten thousand pending pods, one Event each would cover the first namespace only and burden the
API server. So each workload gets a sum, and the pods' Events are shared among the workloads.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, zip_longest
from typing import Final

from reconciler.loops.reason_words import usual_remedy
from reconciler.loops.workloads import Workload, workload_of
from reconciler.model.cluster import Owner, Pod
from reconciler.model.ids import PodKey
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from reconciler.model.text import counted_noun
from reconciler.model.unplaceable import Reason, ReasonKind, Unplaceable, with_shared
from reconciler.ports.object_events import ObjectEvent, pod_event
from reconciler.telemetry.scrubbing import without_account

REASON: Final = "NotTriggerScaleUp"
WORKLOADS_MAX: Final = 200
"""How many workloads one cycle reports: those with the most pods."""
REASONS_MAX: Final = 5
"""How many different reasons one message names."""
FLEETS_MAX: Final = 3
"""How many fleets one reason names."""
API_VERSIONS: Final[Mapping[str, str]] = {
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
    "Job": "batch/v1",
    "ReplicationController": "v1",
}
"""Kinds of controllers on which Events are written."""


def refusal_events(snapshot: Snapshot, plan: Plan, pods_max: int) -> Iterator[ObjectEvent]:
    """Return the Events about everything that is unplaceable.

    Args:
        snapshot: Has the pods' owners.
        plan: Has the reasons.
        pods_max: How many pods get an Event of their own.
    """
    if not plan.unplaceable:
        return
    pods = {pod.key: pod for pod in snapshot.cluster.pods if pod.node_name is None}
    groups: dict[Workload | None, list[Unplaceable]] = {}
    for unplaceable in plan.unplaceable:
        pod = pods.get(unplaceable.pod)
        groups.setdefault(None if pod is None else workload_of(pod), []).append(unplaceable)
    ordered = sorted(groups.values(), key=len, reverse=True)
    reported = ordered[:WORKLOADS_MAX]
    firsts = with_shared((group[0] for group in reported), _reasons)
    for group, (_, why) in zip(reported, firsts, strict=True):
        yield from _of_owner(group, why, pods)
    for unplaceable, why in with_shared(islice(round_robin(ordered), pods_max), _reasons):
        yield _of_pod(unplaceable, why)


def round_robin(groups: Iterable[Sequence[Unplaceable]]) -> Iterator[Unplaceable]:
    """Yield the first of each group, then the second of each, and so on."""
    for row in zip_longest(*groups):
        yield from (each for each in row if each is not None)


def _of_owner(
    group: Sequence[Unplaceable], why: str, pods: Mapping[PodKey, Pod]
) -> Iterator[ObjectEvent]:
    """Yield the Event with the sum, on the controller of the first of the pods."""
    pod = pods.get(group[0].pod)
    owner: Owner | None = None if pod is None else pod.owner
    if owner is None or not owner.uid or owner.kind not in API_VERSIONS:
        return
    yield ObjectEvent(
        kind=owner.kind,
        api_version=API_VERSIONS[owner.kind],
        namespace=group[0].pod.namespace,
        name=owner.name,
        uid=owner.uid,
        reason=REASON,
        message=f"no fleet can run {counted_noun(len(group), 'pod')} of it, such as "
        f"{group[0].pod.name}: {why}",
        warning=True,
        about=_codes(group[0].reasons),
    )


def _of_pod(found: Unplaceable, why: str) -> ObjectEvent:
    message = f"no fleet can run it: {why}"
    return pod_event(found.pod, REASON, message, warning=True, about=_codes(found.reasons))


def _codes(reasons: Sequence[Reason]) -> str:
    return " ".join(sorted({f"{reason.fleet}:{reason.region}:{reason.code}" for reason in reasons}))


def _reasons(reasons: Sequence[Reason]) -> str:
    """Return each reason once, with the fleets that give it and what usually helps.

    What AWS answered is a reason too, and whoever may see the pods may read these Events: it is
    written without account numbers and ARNs.
    """
    fleets: dict[tuple[str, str, ReasonKind], list[str]] = {}
    for reason in reasons:
        named = fleets.setdefault((reason.code, reason.detail, reason.kind), [])
        if reason.fleet:
            named.append(f"{reason.fleet} in {reason.region}")
    shown = [
        f"{code}: {detail}" + (f" ({_named(names)})" if names else "")
        for (code, detail, _), names in list(fleets.items())[:REASONS_MAX]
    ]
    if len(fleets) > REASONS_MAX:
        shown.append(f"and {len(fleets) - REASONS_MAX} more reasons")
    remedies = list(filter(None, (usual_remedy(code, kind) for code, _, kind in fleets)))
    usual = f". What usually helps: {remedies[0]}" if remedies else ""
    return without_account("; ".join(shown)) + usual


def _named(fleets: Sequence[str]) -> str:
    more = f" and {len(fleets) - FLEETS_MAX} more" if len(fleets) > FLEETS_MAX else ""
    return ", ".join(fleets[:FLEETS_MAX]) + more
