"""Anonymises recorded demand; what simulations read of it stays the same.

Names of pods, controllers, claims, storage classes, namespaces and schedulers, and the keys and
values of pods' labels, become keyed hashes: equal texts become equal hashes, so that selectors,
budgets, spread and affinity keep their meaning, and ReplicaSets and Jobs are still named after
their Deployments and CronJobs. Resources, priorities, and everything about nodes (node selectors,
node affinity, tolerations, topology keys, zones of volumes, names of fleets) stay, as a config
names the same labels; except names of nodes, which no config has.
"""

import hashlib
import re
import secrets
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from typing import Final, assert_never

from reconciler.model.actions import DO_NOT_DRAIN
from reconciler.model.cluster import (
    DEFAULT_SCHEDULER,
    Owner,
    PodAffinityTerm,
    PodPreference,
    PodSpec,
)
from reconciler.model.demand import (
    BudgetDemand,
    ClaimDemand,
    ControllerDemand,
    CronDemand,
    DemandLine,
    FaultDemand,
    FleetFact,
    NodeFact,
    PodDemand,
    PodEnd,
    PodVolumes,
)
from reconciler.model.frozen import FrozenMap, Labels
from reconciler.model.selectors import (
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
    Requirement,
)
from reconciler.model.text import parse_go_duration
from reconciler.model.top_controller import HASH_LABEL, cron_job_of, deployment_of
from reconciler.model.volumes import NO_PROVISIONER
from reconciler.records.demand.folding import OF_NO_POD

KEY_BYTES: Final = 32
_DIGEST_BYTES: Final = 10
_SHARED_NAMESPACES: Final = frozenset({"", "default", "kube-system"})
"""Every cluster has them."""
_NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
_NODE_NAME: Final = "kubernetes.io/hostname"
"""The label of nodes that is their name."""
_PLANNING_ANNOTATIONS: Final = (
    "fleet-reconciler.io/",
    "cluster-autoscaler.kubernetes.io/",
    "karpenter.sh/",
    "descheduler.alpha.kubernetes.io/",
    "controller.kubernetes.io/pod-deletion-cost",
)
"""The annotations of pods that are kept: those that a plan can depend on, as it can on one label
(`DO_NOT_DRAIN`), which is kept in addition to its hash."""
_DRIVERS_OF_AWS: Final = ".csi.aws.com"
_PLAIN: Final = re.compile(r"true|false|-?[0-9]+")


class Anonymiser:
    """Replaces names in lines of demand; equal names get equal hashes in all of them.

    Args:
        key: The key of the hashes, with which names can be guessed and tested. Default: random, and
            never stored.
    """

    def __init__(self, key: bytes = b"") -> None:
        self._key = key or secrets.token_bytes(KEY_BYTES)
        self._hashed = cache(self._hash)
        self._spec = cache(self._new_spec)

    def line(self, line: DemandLine) -> DemandLine:  # noqa: PLR0911 - one for each kind
        """Return the line without names."""
        match line:
            case PodDemand():
                return replace(
                    line,
                    id=self._hashed("pod", line.id),
                    spec=self._spec(line.spec),
                    namespace=self._namespace(line.namespace),
                    controller=self._owner(line.controller, line.labels),
                    labels=self._labels(line.labels),
                    annotations=self._for_planning(line.annotations),
                    volumes=self._volumes(line.volumes),
                )
            case PodEnd():
                known = line.id in OF_NO_POD
                return line if known else replace(line, id=self._hashed("pod", line.id))
            case ControllerDemand():
                return replace(
                    line,
                    controller=self._named(line.controller, line.controller.name, ""),
                    namespace=self._namespace(line.namespace),
                    spec=None if line.spec is None else self._spec(line.spec),
                    claim_templates=tuple(
                        replace(
                            claim_template,
                            name=self._hashed("claim", claim_template.name),
                            storage_class=self._class(claim_template.storage_class),
                        )
                        for claim_template in line.claim_templates
                    ),
                    labels=self._labels(line.labels),
                    annotations=self._for_planning(line.annotations),
                    volumes=self._volumes(line.volumes),
                )
            case BudgetDemand():
                return replace(
                    line,
                    id=self._hashed("budget", line.id),
                    namespace=self._namespace(line.namespace),
                    selector=self._selector(line.selector),
                )
            case CronDemand():
                return replace(
                    line,
                    id=self._hashed("cron", line.id),
                    spec=self._spec(line.spec),
                    namespace=self._namespace(line.namespace),
                    labels=self._labels(line.labels),
                    annotations=self._for_planning(line.annotations),
                    volumes=self._volumes(line.volumes),
                )
            case ClaimDemand():
                return replace(
                    line,
                    id=self._hashed("claim", line.id),
                    namespace=self._namespace(line.namespace),
                    storage_class=self._class(line.storage_class),
                    driver=self._driver(line.driver),
                )
            case FaultDemand() | FleetFact() | NodeFact():
                return line
            case _:
                assert_never(line)

    def _hash(self, kind: str, text: str) -> str:
        """Return the hash of a text of one kind: a valid label value, key, name and namespace."""
        person = kind.encode()
        digest = hashlib.blake2b(
            text.encode(), digest_size=_DIGEST_BYTES, key=self._key, person=person
        )
        return f"{kind}-{digest.hexdigest()}"

    def _namespace(self, name: str) -> str:
        return name if name in _SHARED_NAMESPACES else self._hashed("ns", name)

    def _volumes(self, volumes: PodVolumes) -> PodVolumes:
        return PodVolumes(
            claims=tuple(self._hashed("claim", claim) for claim in volumes.claims),
            ephemeral=tuple(self._hashed("volume", each) for each in volumes.ephemeral),
        )

    def _class(self, name: str) -> str:
        return self._hashed("class", name) if name else ""

    def _driver(self, name: str) -> str:
        known = name == NO_PROVISIONER or name.endswith(_DRIVERS_OF_AWS)
        return name if known else self._hashed("driver", name)

    def _owner(self, owner: Owner | None, labels: Labels) -> Owner | None:
        """Return the controller of a pod with these labels."""
        if owner is None:
            return None
        deployment, cron_job = deployment_of(owner, labels), cron_job_of(owner)
        if deployment is not None:
            return self._named(owner, deployment, f"-{self._label_value(labels[HASH_LABEL])}")
        if cron_job is not None:
            return self._named(owner, cron_job, owner.name.removeprefix(cron_job))
        return self._named(owner, owner.name, "")

    def _named(self, owner: Owner, name: str, suffix: str) -> Owner:
        return Owner(kind=owner.kind, name=f"{self._hashed('name', name)}{suffix}")

    def _label_key(self, key: str) -> str:
        return key if key == HASH_LABEL else self._hashed("k", key)

    def _label_value(self, value: str) -> str:
        return self._hashed("v", value) if value else ""

    def _labels(self, labels: Labels) -> Labels:
        hashed = {self._label_key(k): self._label_value(v) for k, v in labels.items()}
        return FrozenMap(hashed | {k: v for k, v in labels.items() if k == DO_NOT_DRAIN})

    def _for_planning(self, annotations: Labels) -> Labels:
        return FrozenMap(
            {
                key: value if _names_nothing(value) else self._label_value(value)
                for key, value in annotations.items()
                if key.startswith(_PLANNING_ANNOTATIONS)
            }
        )

    def _new_spec(self, spec: PodSpec) -> PodSpec:
        return replace(
            spec,
            scheduler_name=self._scheduler(spec.scheduler_name),
            node_selector=FrozenMap(
                {
                    key: self._hashed("node", value) if key == _NODE_NAME else value
                    for key, value in spec.node_selector.items()
                }
            ),
            node_affinity=self._without_node_names(spec.node_affinity),
            node_preferences=tuple(
                replace(node_preference, term=self._node_term(node_preference.term))
                for node_preference in spec.node_preferences
            ),
            pod_affinity=tuple(map(self._term, spec.pod_affinity)),
            pod_anti_affinity=tuple(map(self._term, spec.pod_anti_affinity)),
            pod_preferences=tuple(
                PodPreference(weight=pod_preference.weight, term=self._term(pod_preference.term))
                for pod_preference in spec.pod_preferences
            ),
            topology_spread=tuple(
                replace(
                    topology_spread_constraint,
                    selector=self._selector(topology_spread_constraint.selector),
                    match_label_keys=self._keys(topology_spread_constraint.match_label_keys),
                )
                for topology_spread_constraint in spec.topology_spread
            ),
        )

    def _scheduler(self, name: str) -> str:
        return name if name == DEFAULT_SCHEDULER else self._hashed("scheduler", name)

    def _without_node_names(self, selector: NodeSelector | None) -> NodeSelector | None:
        """Return the selector with hashed node names; a simulation's nodes have others anyway."""
        if selector is None:
            return None
        return NodeSelector(terms=tuple(map(self._node_term, selector.terms)))

    def _node_term(self, term: NodeSelectorTerm) -> NodeSelectorTerm:
        return replace(
            term,
            fields=tuple(map(self._with_node_names, term.fields)),
            expressions=tuple(
                self._with_node_names(expression) if expression.key == _NODE_NAME else expression
                for expression in term.expressions
            ),
        )

    def _with_node_names(self, line: Requirement) -> Requirement:
        """Return a line whose values are names of nodes, with hashes of these."""
        return replace(line, values=tuple(self._hashed("node", v) for v in line.values))

    def _term(self, term: PodAffinityTerm) -> PodAffinityTerm:
        return replace(
            term,
            selector=self._selector(term.selector),
            namespaces=frozenset(map(self._namespace, term.namespaces)),
            namespace_selector=self._namespace_selector(term.namespace_selector),
            match_label_keys=self._keys(term.match_label_keys),
            mismatch_label_keys=self._keys(term.mismatch_label_keys),
        )

    def _keys(self, keys: Iterable[str]) -> tuple[str, ...]:
        return tuple(map(self._label_key, keys))

    def _selector(self, selector: LabelSelector | None) -> LabelSelector | None:
        if selector is None:
            return None
        return LabelSelector(
            match_labels=self._labels(selector.match_labels),
            match_expressions=tuple(
                replace(
                    match_expression,
                    key=self._label_key(match_expression.key),
                    values=tuple(map(self._label_value, match_expression.values)),
                )
                for match_expression in selector.match_expressions
            ),
        )

    def _namespace_selector(self, selector: LabelSelector | None) -> LabelSelector | None:
        """Return a selector of namespaces, one of whose labels is their name."""
        if selector is None:
            return None
        named = {
            k: self._namespace(v) for k, v in selector.match_labels.items() if k == _NAMESPACE_NAME
        }
        others = {k: v for k, v in selector.match_labels.items() if k != _NAMESPACE_NAME}
        return LabelSelector(
            match_labels=FrozenMap({**self._labels(FrozenMap(others)), **named}),
            match_expressions=tuple(map(self._namespace_line, selector.match_expressions)),
        )

    def _namespace_line(self, line: Requirement) -> Requirement:
        if line.key == _NAMESPACE_NAME:
            return replace(line, values=tuple(map(self._namespace, line.values)))
        return replace(
            line,
            key=self._label_key(line.key),
            values=tuple(map(self._label_value, line.values)),
        )


def _names_nothing(value: str) -> bool:
    """Return whether the value of an annotation is a number, a duration, `true` or `false`."""
    return _PLAIN.fullmatch(value) is not None or parse_go_duration(value) is not None
