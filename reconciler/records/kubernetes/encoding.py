"""Encodes values of the model as Kubernetes JSON, which decodes to equal values.

Recorded demand and the snapshots of simulations are written with it. Only what planning reads is in
it: a spec has one container, which asks for what the whole pod does, where one can.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from reconciler.model.cluster import (
    DEFAULT_SCHEDULER,
    DaemonSet,
    HostPort,
    Node,
    Owner,
    Pod,
    PodAffinityTerm,
    PodDisruptionBudget,
    PodSpec,
    Resources,
    Taint,
    Toleration,
    TopologySpreadConstraint,
)
from reconciler.model.selectors import LabelSelector, NodeSelectorTerm, Requirement
from reconciler.records.kubernetes.fields import AMOUNT_LIMIT
from reconciler.records.times import rfc3339_exact

Json = dict[str, Any]

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_REFUSED: Json = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def encode_pod_spec(spec: PodSpec) -> Json:
    """Return the spec of a pod or pod template that decodes to this one."""
    return present(
        {
            "containers": _containers(spec),
            "nodeSelector": dict(spec.node_selector),
            "affinity": _affinity(spec),
            "tolerations": [_toleration(toleration) for toleration in spec.tolerations],
            "topologySpreadConstraints": [
                _spread(topology_spread_constraint)
                for topology_spread_constraint in spec.topology_spread
            ],
            "priority": spec.priority or None,
            "preemptionPolicy": None if spec.preempts else "Never",
            "schedulerName": _unless(spec.scheduler_name, DEFAULT_SCHEDULER),
            "terminationGracePeriodSeconds": _unless(spec.termination_grace_seconds, 30),
            "restartPolicy": "Never" if spec.ends_by_itself else None,
            "volumes": [{"name": "local", "emptyDir": {}}] if spec.local_storage else None,
        }
    )


def with_volumes(spec: Json, claims: Sequence[str], ephemeral: Sequence[str] = ()) -> Json:
    """Return a pod's encoded spec with its claims, and its generic ephemeral volumes by name."""
    if not (claims or ephemeral):
        return spec
    named = [
        {"name": f"claim-{number}", "persistentVolumeClaim": {"claimName": each}}
        for number, each in enumerate(claims)
    ]
    own = [{"name": each, "ephemeral": {}} for each in ephemeral]
    return {**spec, "volumes": [*spec.get("volumes", ()), *named, *own]}


def encode_selector(selector: LabelSelector | None) -> Json | None:
    """Return a metav1.LabelSelector; None stays None."""
    if selector is None:
        return None
    return present(
        {
            "matchLabels": dict(selector.match_labels),
            "matchExpressions": [
                _requirement(match_expression) for match_expression in selector.match_expressions
            ],
        }
    )


def encode_pod(pod: Pod) -> Json:
    """Return a v1 Pod."""
    spec = with_volumes(encode_pod_spec(pod.spec), pod.claims)
    if pod.node_name is not None:
        spec["nodeName"] = pod.node_name
    if pod.gated:
        spec["schedulingGates"] = [{"name": "recorded"}]
    annotations = dict(pod.annotations)
    if pod.mirror:
        annotations["kubernetes.io/config.mirror"] = "true"
    metadata = {
        "name": pod.key.name,
        "namespace": pod.key.namespace,
        "uid": pod.key.uid,
        "labels": dict(pod.labels),
        "annotations": annotations,
        "ownerReferences": _owners(pod.owner),
        "creationTimestamp": _time(pod.created_at),
        "deletionTimestamp": _time(pod.deletion_at),
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": present(metadata), "spec": spec,
            "status": _pod_status(pod)}  # fmt: skip


def encode_node(node: Node) -> Json:
    """Return a v1 Node."""
    ready = {"type": "Ready", "status": "True" if node.ready else "False",
             "lastTransitionTime": _time(node.ready_changed_at)}  # fmt: skip
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": present(
            {
                "name": node.name,
                "uid": node.uid,
                "labels": dict(node.labels),
                "annotations": dict(node.annotations),
                "creationTimestamp": _time(node.created_at),
            }
        ),
        "spec": present(
            {
                "providerID": node.provider_id,
                "unschedulable": node.unschedulable or None,
                "taints": [_taint(taint) for taint in node.taints],
            }
        ),
        "status": {
            "allocatable": encode_resources(node.allocatable),
            "capacity": encode_resources(node.capacity),
            "conditions": [present(ready)],
        },
    }


def encode_budget(budget: PodDisruptionBudget) -> Json:
    """Return a policy/v1 PodDisruptionBudget."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": budget.name, "namespace": budget.namespace},
        "spec": {
            "selector": encode_selector(budget.selector),
            "unhealthyPodEvictionPolicy": budget.unhealthy_pod_eviction_policy,
        },
        "status": {
            "disruptionsAllowed": budget.disruptions_allowed,
            "currentHealthy": budget.current_healthy,
            "desiredHealthy": budget.desired_healthy,
        },
    }


def encode_daemon_set(daemon_set: DaemonSet) -> Json:
    """Return an apps/v1 DaemonSet."""
    metadata = {"name": daemon_set.name, "namespace": daemon_set.namespace, "uid": daemon_set.uid}
    shown = present({"labels": dict(daemon_set.labels)})
    template = {"metadata": shown, "spec": encode_pod_spec(daemon_set.spec)}
    status = {"desiredNumberScheduled": 1} if daemon_set.makes_no_pods else {}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": present(metadata),
            "spec": {"template": template}, **present({"status": status})}  # fmt: skip


def encode_resources(amounts: Resources) -> dict[str, str]:
    """Return a resource list in quantities, `pods` included."""
    return {
        name: f"{amount}m" if name == "cpu" else str(amount) for name, amount in amounts.items()
    }


def present(fields: Mapping[str, Any]) -> Json:
    """Return the fields that are not empty."""
    return {key: value for key, value in fields.items() if value not in (None, "", [], {})}


def _unless(value: str | int, usual: str | int) -> str | int | None:
    return None if value == usual else value


def _containers(spec: PodSpec) -> list[Json]:
    """Return one container, or several where requests add up to more than a quantity may be."""
    left = {name: amount for name, amount in spec.requests.items() if name != "pods"}
    first: Json = {"name": "all"}
    containers = [first]
    while left:
        requests = {name: min(amount, AMOUNT_LIMIT - 1) for name, amount in left.items()}
        containers[-1]["resources"] = {"requests": encode_resources(Resources(requests))}
        rest = {name: amount - requests[name] for name, amount in left.items()}
        left = {name: amount for name, amount in rest.items() if amount}
        if left:
            containers.append({"name": f"all-{len(containers)}"})
    if spec.host_ports:
        first["ports"] = [_port(host_port) for host_port in spec.host_ports]
    return containers


def _port(port: HostPort) -> Json:
    return {"containerPort": port.port, "hostPort": port.port, "hostIP": port.address,
            "protocol": port.protocol}  # fmt: skip


def _affinity(spec: PodSpec) -> Json:
    node: Json = {}
    if spec.node_affinity is not None:
        node[REQUIRED] = {
            "nodeSelectorTerms": [encode_node_term(t) for t in spec.node_affinity.terms]
        }
    if spec.node_preferences:
        node[PREFERRED] = [
            {"weight": node_preference.weight, "preference": encode_node_term(node_preference.term)}
            for node_preference in spec.node_preferences
        ]
    return present(
        {
            "nodeAffinity": node,
            "podAffinity": _pod_affinity(spec, spec.pod_affinity, 1),
            "podAntiAffinity": _pod_affinity(spec, spec.pod_anti_affinity, -1),
        }
    )


def _pod_affinity(spec: PodSpec, required: Iterable[PodAffinityTerm], sign: int) -> Json:
    preferred = [
        {"weight": abs(pod_preference.weight), "podAffinityTerm": _pod_term(pod_preference.term)}
        for pod_preference in spec.pod_preferences
        if pod_preference.weight * sign > 0 or (pod_preference.weight == 0 and sign > 0)
    ]
    return present(
        {
            REQUIRED: [_pod_term(pod_affinity_term) for pod_affinity_term in required],
            PREFERRED: preferred,
        }
    )


def encode_node_term(term: NodeSelectorTerm) -> Json:
    """Return a v1 NodeSelectorTerm."""
    return present(
        {
            "matchExpressions": [_requirement(expression) for expression in term.expressions],
            "matchFields": [_requirement(field) for field in term.fields],
        }
    )


def _pod_term(term: PodAffinityTerm) -> Json:
    fields = {
        "topologyKey": term.topology_key,
        "namespaces": sorted(term.namespaces),
        "matchLabelKeys": list(term.match_label_keys),
        "mismatchLabelKeys": list(term.mismatch_label_keys),
    }
    return present(fields) | _selectors(
        labelSelector=term.selector, namespaceSelector=term.namespace_selector
    )


def _selectors(**selectors: LabelSelector | None) -> Json:
    """Return the selectors that exist: an empty one matches everything and is not a missing one."""
    return {
        key: encode_selector(label_selector)
        for key, label_selector in selectors.items()
        if label_selector is not None
    }


def _requirement(line: Requirement) -> Json:
    return present({"key": line.key, "operator": line.operator, "values": list(line.values)})


def _toleration(toleration: Toleration) -> Json:
    return present(
        {
            "key": toleration.key,
            "operator": toleration.operator,
            "value": toleration.value,
            "effect": toleration.effect,
        }
    )


def _taint(taint: Taint) -> Json:
    return present({"key": taint.key, "value": taint.value, "effect": taint.effect})


def _spread(rule: TopologySpreadConstraint) -> Json:
    fields = {
        "topologyKey": rule.topology_key,
        "maxSkew": rule.max_skew,
        "whenUnsatisfiable": "DoNotSchedule" if rule.hard else "ScheduleAnyway",
        "minDomains": _unless(rule.min_domains, 1),
        "nodeAffinityPolicy": None if rule.honor_node_affinity else "Ignore",
        "nodeTaintsPolicy": "Honor" if rule.honor_node_taints else None,
        "matchLabelKeys": list(rule.match_label_keys),
    }
    return present(fields) | _selectors(labelSelector=rule.selector)


def _owners(owner: Owner | None) -> list[Json]:
    if owner is None:
        return []
    return [{"kind": owner.kind, "name": owner.name, "uid": owner.uid, "controller": True}]


def _is_refused(pod: Pod) -> bool:
    """Return whether the pod's own scheduler has called it Unschedulable."""
    own = pod.spec.scheduler_name != DEFAULT_SCHEDULER
    return own and pod.node_name is None and not pod.left_to_scheduler


def _pod_status(pod: Pod) -> Json:
    moment = _time(pod.finished_at)
    ready = {"type": "Ready", "status": "True" if pod.ready else "False",
             "lastTransitionTime": moment}  # fmt: skip
    bound = {"type": "PodScheduled", "status": "True",
             "lastTransitionTime": _time(pod.scheduled_at)}  # fmt: skip
    return present(
        {
            "phase": pod.phase,
            "startTime": _time(pod.started_at),
            "nominatedNodeName": pod.nominated_node_name,
            "conditions": [
                present(ready),
                *([bound] if pod.scheduled_at else ()),
                *([_REFUSED] if _is_refused(pod) else ()),
            ],
        }
    )


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else rfc3339_exact(moment)
