"""Claims for a single pod (ReadWriteOncePod): which of the pending pods gets each."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from reconciler.model.cluster import Pod, PodSpec, Resources
from reconciler.model.frozen import Labels
from reconciler.model.ids import PodKey
from reconciler.model.volumes import ONE_POD, PersistentVolumeClaim
from reconciler.planner.placement.kinds import label_of

_TRIED_MAX = 4
_CONTESTED_MAX = 8
"""For how many claims and pods all nodes are compared: a tenant may write thousands."""
_STATED_BY_FEW = frozenset({"ephemeral-storage"})
"""Names that a config need not state, and of which every node has some."""

MayRun = Callable[[PodSpec], bool]
Name = tuple[str, str]
"""Namespace and name of a claim."""
Place = tuple[Sequence[Labels], Resources]
"""The labels that a node has or may have, and what it offers when it is empty."""


def first_of_each(
    claims: Mapping[Name, PersistentVolumeClaim], waiting: Iterable[Pod], may_run: MayRun
) -> dict[Name, PodKey]:
    """Return for each single-pod claim the pending pod that gets it: the first by name.

    A pod that can run nowhere is skipped, as it would keep the claim from the others forever.
    """
    users: dict[Name, list[Pod]] = {}
    for pod in sorted(waiting, key=lambda pod: pod.key):
        for name in dict.fromkeys(pod.claims):
            claim = claims.get((pod.key.namespace, name))
            if claim is not None and ONE_POD in claim.access_modes:
                users.setdefault((pod.key.namespace, name), []).append(pod)
    pod_keys: dict[Name, PodKey] = {}
    contested = 0
    for place, pods in users.items():
        contested += len(pods) > 1
        tried = pods[:_TRIED_MAX] if len(pods) > 1 and contested <= _CONTESTED_MAX else []
        pod_keys[place] = next((pod for pod in tried if may_run(pod.spec)), pods[0]).key
    return pod_keys


class RoughPlaces:
    """Existing nodes, and what new nodes will be; used before there is a what-if cluster."""

    def __init__(self, places: Iterable[Place]) -> None:
        self._places = places
        self._known: list[Place] | None = None

    def may_take(self, spec: PodSpec) -> bool:
        """Return whether some place has the labels and, empty, the amounts that the spec asks for.

        False is certain; True is not a promise, as nothing else of the spec is checked.
        """
        if self._known is None:
            self._known = list(self._places)
        return any(
            all(
                amount <= offers.get(name, amount if name in _STATED_BY_FEW else 0)
                for name, amount in spec.requests.items()
            )
            and any(
                all(label_of(labels, key) == value for key, value in spec.node_selector.items())
                for labels in variants
            )
            for variants, offers in self._known
        )
