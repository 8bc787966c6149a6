"""Demand from a Prometheus server: pods in metrics of kube-state-metrics.

These say when pods came, what they requested and when they ended. Source of the metrics' names
and labels: the documentation of kube-state-metrics 2.x, read 2026-11.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Final

from reconciler.model.cluster import Owner, PodSpec, Toleration
from reconciler.model.demand import DemandLine, PodDemand
from reconciler.model.errors import InputError
from reconciler.model.frozen import FrozenMap
from reconciler.ports.metrics_history import Sample
from reconciler.records.demand.line_limits import bounded_owner, bounded_seconds
from reconciler.records.kubernetes.fields import AMOUNT_LIMIT
from reconciler.records.kubernetes.limits import LINES_MAX, TOLERATIONS_MAX

PODS_MAX: Final = 5_000_000
GONE_AFTER: Final = timedelta(minutes=5)
"""A pod without samples for this long before the end was deleted. Prometheus itself calls a series
stale after the same time."""
_WITH_NODES: Final = frozenset({"DaemonSet", "Node"})
"""Pods of DaemonSets and static pods come with their nodes."""
_NODE_LABELS: Final = {
    "kubernetes_io_arch": "kubernetes.io/arch",
    "kubernetes_io_os": "kubernetes.io/os",
    "kubernetes_io_hostname": "kubernetes.io/hostname",
    "node_kubernetes_io_instance_type": "node.kubernetes.io/instance-type",
    "topology_kubernetes_io_zone": "topology.kubernetes.io/zone",
    "topology_kubernetes_io_region": "topology.kubernetes.io/region",
    "karpenter_sh_capacity_type": "karpenter.sh/capacity-type",
    "eks_amazonaws_com_nodegroup": "eks.amazonaws.com/nodegroup",
}
"""Keys in which kube-state-metrics has replaced dots and slashes."""
_SELECTOR: Final = "nodeselector_"
_RESOURCES: Final = {"cpu": ("cpu", 1000), "memory": ("memory", 1),
                     "ephemeral_storage": ("ephemeral-storage", 1),
                     "nvidia_com_gpu": ("nvidia.com/gpu", 1),
                     "amd_com_gpu": ("amd.com/gpu", 1),
                     "aws_amazon_com_neuron": ("aws.amazon.com/neuron", 1)}  # fmt: skip
"""By name in a metric: the name in a pod's requests, and its units per unit of the metric."""
_OWN: Final = ("namespace", "pod", "uid", "container")
"""Labels of kube-state-metrics that a server replaces by those of its target, unless its
scrape has `honor_labels`; it keeps the original ones with a prefix then."""
_EXPORTED: Final = "exported_"
_BY_POD: Final = "namespace, pod, uid, exported_namespace, exported_pod, exported_uid"


def queries(match: str, step: timedelta) -> Mapping[str, str]:
    """Return the expressions to query at the end of each step, by what they return.

    Args:
        match: Matchers of every series, such as `cluster="prod"`; may be empty.
        step: Length of the time before that moment that they cover.
    """
    seconds = max(1, math.ceil(step.total_seconds()))

    def most(metric: str, by: str = _BY_POD, more: str = "") -> str:
        matchers = ", ".join(filter(None, (match, more)))
        return f"max by ({by}) (max_over_time({metric}{{{matchers}}}[{seconds}s]))"

    created = f"timestamp(kube_pod_created{{{match}}})"
    kept = f"{_BY_POD}, container, exported_container, resource"
    return {
        "created": most("kube_pod_created"),
        "seen": f"max by ({_BY_POD}) (max_over_time({created}[{seconds}s:60s]))",
        "started": most("kube_pod_start_time"),
        "completed": most("kube_pod_completion_time"),
        "owner": most("kube_pod_owner", f"{_BY_POD}, owner_kind, owner_name"),
        "requests": most("kube_pod_container_resource_requests", kept),
        "init": most("kube_pod_init_container_resource_requests", kept),
        "tolerations": most("kube_pod_tolerations", f"{_BY_POD}, key, operator, value, effect"),
        # All labels are kept: each key of a node selector is a label of its own.
        "selectors": f"max_over_time(kube_pod_nodeselectors{{{match}}}[{seconds}s])",
    }


@dataclass(slots=True, kw_only=True)
class _Known:
    """What is known of one pod."""

    namespace: str
    name: str
    created: datetime
    seen: datetime
    started: datetime | None = None
    completed: datetime | None = None
    owner: Owner | None = None
    containers: dict[str, dict[str, int]] = field(default_factory=dict)
    init: dict[str, dict[str, int]] = field(default_factory=dict)
    tolerations: set[tuple[str, str, str, str]] = field(default_factory=set)
    selector: dict[str, str] = field(default_factory=dict)

    @property
    def left_out(self) -> bool:
        """Return whether its controller creates it per node, or it exceeds the limits of rules."""
        with_node = self.owner is not None and self.owner.kind in _WITH_NODES
        too_many = len(self.tolerations) > TOLERATIONS_MAX or len(self.selector) > LINES_MAX
        return with_node or too_many


class PodHistory:
    """Collects the answers of the steps, and converts them to lines of demand.

    Args:
        name: Name of the server in messages.
        pods_max: How many pods are accepted.
    """

    def __init__(self, name: str, pods_max: int = PODS_MAX) -> None:
        self._name = name
        self._pods_max = pods_max
        self._pods: dict[str, _Known] = {}
        self._specs: dict[PodSpec, PodSpec] = {}

    def __len__(self) -> int:
        return len(self._pods)

    def add(self, answers: Mapping[str, Sequence[Sample]]) -> None:
        """Add the answers of one step, by the names that `queries` gives.

        Raises:
            InputError: There are more pods than `pods_max`.
        """
        answers = {what: [_with_own(sample) for sample in told] for what, told in answers.items()}
        for sample in answers["created"]:
            self._came(sample)
        for key, sample in _of_pods(answers["owner"]):
            kind, name = sample.labels.get("owner_kind"), sample.labels.get("owner_name")
            if (known := self._pods.get(key)) and kind and name and "<none>" not in {kind, name}:
                known.owner = Owner(kind=kind, name=name)
        self._add_times(answers)
        self._add_requests(answers)
        self._add_rules(answers)

    def _add_times(self, answers: Mapping[str, Sequence[Sample]]) -> None:
        for what in ("seen", "started", "completed"):
            for key, sample in _of_pods(answers[what]):
                known, moment = self._pods.get(key), _moment(sample.value)
                if known is not None and moment is not None:
                    setattr(known, what, max(moment, getattr(known, what) or moment))

    def _add_requests(self, answers: Mapping[str, Sequence[Sample]]) -> None:
        for what in ("requests", "init"):
            for key, sample in _of_pods(answers[what]):
                if known := self._pods.get(key):
                    _add_request(known.containers if what == "requests" else known.init, sample)

    def _came(self, sample: Sample) -> None:
        key, created = _key(sample), _moment(sample.value)
        if created is None or key in self._pods:
            return
        if len(self._pods) >= self._pods_max:
            more = f"tells of more than {self._pods_max:,} pods"
            raise InputError(self._name, more, "record fewer days, or narrow it with --match")
        self._pods[key] = _Known(
            namespace=sample.labels.get("namespace", ""),
            name=sample.labels.get("pod", ""),
            created=created,
            seen=created,
        )

    def _add_rules(self, answers: Mapping[str, Sequence[Sample]]) -> None:
        for key, sample in _of_pods(answers["tolerations"]):
            if known := self._pods.get(key):
                said = sample.labels
                known.tolerations.add(
                    (
                        said.get("key", ""),
                        said.get("operator", "") or "Equal",
                        said.get("value", ""),
                        said.get("effect", ""),
                    )
                )
        for key, sample in _of_pods(answers["selectors"]):
            if known := self._pods.get(key):
                for label, value in sample.labels.items():
                    if label.startswith(_SELECTOR) and value:
                        plain = label.removeprefix(_SELECTOR)
                        known.selector[_NODE_LABELS.get(plain, plain)] = value

    def lines(self, begin: datetime, end: datetime) -> Iterator[DemandLine]:
        """Yield a line for each pod that asked for room, in order of their creation.

        A pod that was there before the begin counts as created then, and what it ran before is
        left out; so is a pod that ended before, or with more rules than are planned for.

        Args:
            begin: Since when the steps told.
            end: Until when they did.
        """
        ordered = sorted(self._pods.items(), key=lambda item: (item[1].created, item[0]))
        for key, known in ordered:
            ended = known.completed
            if ended is None and known.seen < end - GONE_AFTER:
                ended = known.seen
            if (ended is not None and ended <= begin) or known.created > end or known.left_out:
                continue
            ran: float | None = None
            if known.completed is not None:
                begun = max(known.started or known.created, begin)
                ran = bounded_seconds((known.completed - begun).total_seconds())
            yield PodDemand(
                at=max(known.created, begin),
                id=key,
                spec=self._spec(known),
                namespace=known.namespace or "default",
                controller=bounded_owner(known.owner),
                ran_seconds=ran,
                until=ended if ran is None else None,
            )

    def _spec(self, known: _Known) -> PodSpec:
        spec = PodSpec(
            requests=FrozenMap(_effective(known)),
            node_selector=FrozenMap(known.selector),
            tolerations=tuple(
                Toleration(key=key, operator=operator, value=value, effect=effect)
                for key, operator, value, effect in sorted(known.tolerations)
            ),
        )
        return self._specs.setdefault(spec, spec)


def _effective(known: _Known) -> dict[str, int]:
    """Return requests as the scheduler does: of all containers, or the largest init one."""
    total: dict[str, int] = {}
    for requests in known.containers.values():
        for resource, amount in requests.items():
            total[resource] = total.get(resource, 0) + amount
    for requests in known.init.values():
        for resource, amount in requests.items():
            total[resource] = max(total.get(resource, 0), amount)
    return {**total, "pods": 1}


def _add_request(containers: dict[str, dict[str, int]], sample: Sample) -> None:
    resource = sample.labels.get("resource", "")
    if resource in _RESOURCES and math.isfinite(sample.value) and sample.value > 0:
        name, units = _RESOURCES[resource]
        amount = min(math.ceil(Decimal(repr(sample.value)) * units), AMOUNT_LIMIT - 1)
        containers.setdefault(sample.labels.get("container", ""), {})[name] = amount


def _with_own(sample: Sample) -> Sample:
    """Return a sample with the labels that kube-state-metrics gave it."""
    told = sample.labels
    own = {name: told[_EXPORTED + name] for name in _OWN if _EXPORTED + name in told}
    return Sample(labels={**told, **own}, value=sample.value) if own else sample


def _of_pods(samples: Sequence[Sample]) -> Iterator[tuple[str, Sample]]:
    for sample in samples:
        yield _key(sample), sample


def _key(sample: Sample) -> str:
    """Return the pod's UID, or its name where kube-state-metrics is too old to have it."""
    labels = sample.labels
    return labels.get("uid") or f"{labels.get('namespace', '')}/{labels.get('pod', '')}"


def _moment(value: float) -> datetime | None:
    """Return a time in seconds since 1970; None for anything else."""
    if not math.isfinite(value) or not 0 < value < 1e11:
        return None
    return datetime.fromtimestamp(value, UTC)
