"""What replaces the rules of a pod that has more of them than is planned for."""

from dataclasses import replace

from reconciler.model.cluster import PodAffinityTerm, PodSpec
from reconciler.model.frozen import NO_LABELS
from reconciler.model.selectors import LabelSelector

EVERY_POD_OF_ITS_NAMESPACE = PodAffinityTerm(
    topology_key="kubernetes.io/hostname", selector=LabelSelector()
)
EVERY_POD = replace(EVERY_POD_OF_ITS_NAMESPACE, namespace_selector=LabelSelector())


def without_rules(spec: PodSpec) -> PodSpec:
    """Return the spec with its requests but without rules; any anti-affinity matches every pod."""
    return replace(
        spec,
        node_selector=NO_LABELS,
        node_affinity=None,
        node_preferences=(),
        tolerations=(),
        pod_affinity=(),
        pod_anti_affinity=(EVERY_POD,) if spec.pod_anti_affinity else (),
        pod_preferences=(),
        topology_spread=(),
    )


def without_stand_in(spec: PodSpec) -> PodSpec:
    """Return the spec without what replaces anti-affinity that was left out.

    On the nodes where a pod runs the replacement protects it. If it counted as a rule of every new
    node's pods, no new node would take any pod.
    """
    kept = tuple(
        [
            term
            for term in spec.pod_anti_affinity
            if term is not EVERY_POD and term is not EVERY_POD_OF_ITS_NAMESPACE
        ]
    )
    return (
        spec if len(kept) == len(spec.pod_anti_affinity) else replace(spec, pod_anti_affinity=kept)
    )
