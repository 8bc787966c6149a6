"""Which label keys any rule reads: nodes and pods are compared by these only."""

from collections.abc import Iterable
from dataclasses import dataclass

from reconciler.model.cluster import PodAffinityTerm, PodSpec
from reconciler.model.frozen import Labels
from reconciler.model.selectors import LabelSelector, NodeSelector, Requirement
from reconciler.planner.placement.kinds import ZONE_KEYS
from reconciler.planner.placement.volume_needs import VolumeNeeds


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedNames:
    """Label keys and resources that existing nodes have or nodes to buy would have."""

    label_keys: frozenset[str]
    resources: frozenset[str]


def selector_keys(specs: Iterable[PodSpec]) -> frozenset[str]:
    """Return every pod label key that some pod's terms read."""
    keys: set[str] = set()
    for spec in specs:
        for term in terms_of(spec):
            if term.selector is not None:
                keys |= term.selector.keys()
            keys.update(term.match_label_keys, term.mismatch_label_keys)
        for constraint in spec.topology_spread:
            if constraint.selector is not None:
                keys |= constraint.selector.keys()
            keys.update(constraint.match_label_keys)
    return frozenset(keys)


NOWHERE = ""
"""Stands for every topology key that no node has and no new node will have: tenants may name any
number of them, and the answer is the same for all."""


def topology_keys(specs: Iterable[PodSpec]) -> frozenset[str]:
    """Return every topology key of a required term or a hard spread constraint."""
    keys: set[str] = set()
    for spec in specs:
        keys |= {t.topology_key for t in (*spec.pod_affinity, *spec.pod_anti_affinity)}
        keys |= {c.topology_key for c in spec.topology_spread if c.hard}
    return frozenset(keys)


def node_label_keys(specs: Iterable[PodSpec], volumes: Iterable[VolumeNeeds]) -> frozenset[str]:
    """Return every node label key that a selector, a node affinity or a volume reads."""
    keys: set[str] = set()
    for spec in specs:
        keys |= set(spec.node_selector)
        if spec.node_affinity is not None:
            keys |= node_selector_keys(spec.node_affinity)
        for preference in spec.node_preferences:
            keys |= {r.key for r in preference.term.expressions}
    for needs in volumes:
        for selector in needs.selectors:
            keys |= node_selector_keys(selector)
    return frozenset(keys | ZONE_KEYS if keys & ZONE_KEYS else keys)


def reads_names(specs: Iterable[PodSpec], volumes: Iterable[VolumeNeeds]) -> bool:
    """Return whether any selector reads `metadata.name`."""
    selectors = [s.node_affinity for s in specs if s.node_affinity is not None]
    selectors += [selector for needs in volumes for selector in needs.selectors]
    return any(term.fields for selector in selectors for term in selector.terms)


def node_selector_keys(selector: NodeSelector) -> set[str]:
    """Return the node label keys that a selector reads."""
    return {r.key for term in selector.terms for r in term.expressions}


def terms_of(spec: PodSpec) -> tuple[PodAffinityTerm, ...]:
    """Return the terms about other pods, required and preferred."""
    required = spec.pod_affinity + spec.pod_anti_affinity
    if not spec.pod_preferences:
        return required
    return (*required, *(p.term for p in spec.pod_preferences))


def with_label_keys(
    selector: LabelSelector | None,
    labels: Labels,
    match_keys: tuple[str, ...],
    mismatch_keys: tuple[str, ...] = (),
) -> LabelSelector | None:
    """Return the selector with both kinds of keys merged in, as the API server does it."""
    if selector is None or not (match_keys or mismatch_keys):
        return selector
    merged = (
        *(
            Requirement(key=k, operator="In", values=(labels[k],))
            for k in match_keys
            if k in labels
        ),
        *(
            Requirement(key=k, operator="NotIn", values=(labels[k],))
            for k in mismatch_keys
            if k in labels
        ),
    )
    return LabelSelector(
        match_labels=selector.match_labels,
        match_expressions=(*selector.match_expressions, *merged),
    )
