"""What a DaemonSet's pods request in addition to its template.

Admission changes pods as they are created: the overhead of a RuntimeClass, a LimitRange's defaults,
a VerticalPodAutoscaler's recommendation, sidecars. No template shows that; running pods do.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from reconciler.model.cluster import DaemonSet, PodSpec, PodTraits, Resources
from reconciler.model.frozen import FrozenMap
from reconciler.model.interning import InternTable, References, released_with
from reconciler.planner.fleets.new_nodes.learned_resources import least_of
from reconciler.planner.pod_groups import PodGroup

SPECS_MAX: Final = 4_096
"""For how many templates the requests of their pods are cached, twice over."""
_ADMITTED: InternTable[tuple[int, Resources], tuple[References, PodSpec]] = InternTable(SPECS_MAX)
"""By the `id` of the template's spec."""

Owners = Mapping[tuple[str, str, str], Resources]
"""By namespace, name and uid of a DaemonSet, the least that any of its running pods requests."""


def requested_by_pods(groups: Iterable[PodGroup]) -> Owners:
    """Return the least that the running pods of each DaemonSet request."""
    found: dict[tuple[str, str, str], set[Resources]] = {}
    for group in groups:
        if group.traits.daemon and runs(group.traits):
            namespace, requests = group.traits.namespace, group.traits.spec.requests
            owners = {(p.owner.name, p.owner.uid) for p in group.pods if p.owner is not None}
            for name, uid in owners:
                found.setdefault((namespace, name, uid), set()).add(requests)
    return {owner: least_of(list(amounts)) for owner, amounts in found.items()}


def runs(traits: PodTraits) -> bool:
    """Return whether such pods run on nodes and can be read."""
    running = traits.bound and traits.phase == "Running"
    return running and not (traits.deleting or traits.unreadable)


def as_admitted(daemon_set: DaemonSet, requested: Owners) -> PodSpec:
    """Return the DaemonSet's spec with at least the requests that all of its running pods have.

    Only pods that name it by its uid count, and a pod that requests more than the others has no
    effect: whoever may write pods in its namespace cannot make it larger while one of its own runs.
    """
    spec = daemon_set.spec
    least = requested.get((daemon_set.namespace, daemon_set.name, daemon_set.uid))
    if least is None or all(spec.requests.get(name, 0) >= n for name, n in least.items()):
        return spec
    key = id(spec), least
    known = _ADMITTED.get(key)
    if known is None:
        names = sorted({*spec.requests, *least})
        more = {name: max(spec.requests.get(name, 0), least.get(name, 0)) for name in names}
        admitted = replace(spec, requests=FrozenMap(more))
        known = _ADMITTED.put(key, (released_with(_ADMITTED, key, spec), admitted))
    return known[1]
