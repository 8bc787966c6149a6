"""Demand from a Prometheus server: pods in metrics of kube-state-metrics.

These say when pods came, what they requested and when they ended. Source of the metrics' names
and labels: the documentation of kube-state-metrics 2.x; of what a completion time means: its
`internal/store/pod.go`; both read 2026-11.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
_SERVICES: Final = frozenset({"ReplicaSet", "ReplicationController", "StatefulSet"})
"""Pods of these do not end by themselves."""
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
                     "nvidia_com_gpu_shared": ("nvidia.com/gpu.shared", 1),
                     "aws_amazon_com_neuron": ("aws.amazon.com/neuron", 1),
                     "aws_amazon_com_neuroncore": ("aws.amazon.com/neuroncore", 1),
                     "aws_amazon_com_neurondevice": ("aws.amazon.com/neurondevice", 1),
                     "vpc_amazonaws_com_efa": ("vpc.amazonaws.com/efa", 1)}  # fmt: skip
"""By name in a metric: the name in a pod's requests, and its units per unit of the metric."""
_MIG: Final = re.compile(r"nvidia_com_mig_(\d+g)_(\d+gb)(_me)?")
"""A part of a GPU in a metric, such as `nvidia.com/mig-1g.5gb`."""
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
        "finished": most("kube_pod_status_phase", more='phase=~"Succeeded|Failed"'),
        "owner": most("kube_pod_owner", f"{_BY_POD}, owner_kind, owner_name"),
        "requests": most("kube_pod_container_resource_requests", kept),
        "init": most("kube_pod_init_container_resource_requests", kept),
        "sidecars": most(
            "kube_pod_init_container_info",
            f"{_BY_POD}, container, exported_container",
            'restart_policy="Always"',
        ),
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
    """When the last of its containers ended that had ended at a scrape."""
    finished: bool | None = None
    """Whether its phase was Succeeded or Failed; None: the server does not keep phases."""
    owner: Owner | None = None
    containers: dict[str, dict[str, int]] = field(default_factory=dict)
    init: dict[str, dict[str, int]] = field(default_factory=dict)
    sidecars: set[str] = field(default_factory=set)
    """The init containers that run for as long as the pod does."""
    tolerations: set[tuple[str, str, str, str]] = field(default_factory=set)
    selector: dict[str, str] = field(default_factory=dict)

    @property
    def ended_by_itself_at(self) -> datetime | None:
        """Return when all of its containers had ended; None: it did not end by itself.

        kube-state-metrics states a completion time as soon as one container has ended, also if it
        is about to be restarted, or others go on. The phase says whether all have ended for good;
        where the server does not keep it, pods of services are taken to go on, and others to end.
        """
        finished = self.finished
        if finished is None:
            finished = self.owner is None or self.owner.kind not in _SERVICES
        return self.completed if finished else None

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
        self.forgotten_until: datetime | None = None
        """When the first step with pods began, if one of them was there before: the server keeps
        nothing of the time until then. None: it keeps all of it, or has no pod."""

    def __len__(self) -> int:
        return len(self._pods)

    def add(self, answers: Mapping[str, Sequence[Sample]], begin: datetime) -> None:
        """Add the answers of one step; steps are added in order of time.

        Args:
            answers: The answers, by the names that `queries` gives.
            begin: When the step began.

        Raises:
            InputError: There are more pods than `pods_max`.
        """
        answers = {
            what: [_with_own(sample) for sample in samples] for what, samples in answers.items()
        }
        is_first = not self._pods
        for sample in answers["created"]:
            self._came(sample)
        if is_first and any(pod.created < begin - GONE_AFTER for pod in self._pods.values()):
            self.forgotten_until = begin
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
        for key, sample in _of_pods(answers["finished"]):
            if known := self._pods.get(key):
                known.finished = known.finished or sample.value == 1

    def _add_requests(self, answers: Mapping[str, Sequence[Sample]]) -> None:
        for what in ("requests", "init"):
            for key, sample in _of_pods(answers[what]):
                if known := self._pods.get(key):
                    _add_request(known.containers if what == "requests" else known.init, sample)
        for key, sample in _of_pods(answers["sidecars"]):
            if known := self._pods.get(key):
                known.sidecars.add(sample.labels.get("container", ""))

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
                labels = sample.labels
                known.tolerations.add(
                    (
                        labels.get("key", ""),
                        labels.get("operator", "") or "Equal",
                        labels.get("value", ""),
                        labels.get("effect", ""),
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
            begin: The first time for which there are steps.
            end: Until when they did.
        """
        ordered = sorted(self._pods.items(), key=lambda item: (item[1].created, item[0]))
        for key, known in ordered:
            completed = ended = known.ended_by_itself_at
            if ended is None and known.seen < end - GONE_AFTER:
                ended = known.seen
            if (ended is not None and ended <= begin) or known.created > end or known.left_out:
                continue
            ran: float | None = None
            if completed is not None:
                begun = max(known.started or known.created, begin)
                ran = bounded_seconds((completed - begun).total_seconds())
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
    """Return requests as the scheduler does: of all containers, or the largest init one.

    Sidecars count on top of both. The order of init containers is not in the metrics; usually
    sidecars are the first of them.
    """
    sidecars = _sum(known.init[name] for name in known.init.keys() & known.sidecars)
    total = _sum([*known.containers.values(), sidecars])
    for name in known.init.keys() - known.sidecars:
        for resource, amount in _sum([known.init[name], sidecars]).items():
            total[resource] = max(total.get(resource, 0), amount)
    return {**total, "pods": 1}


def _sum(many: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for requests in many:
        for resource, amount in requests.items():
            total[resource] = total.get(resource, 0) + amount
    return total


def _add_request(containers: dict[str, dict[str, int]], sample: Sample) -> None:
    name, units = _resource(sample.labels.get("resource", ""))
    if name and math.isfinite(sample.value) and sample.value > 0:
        amount = min(math.ceil(Decimal(repr(sample.value)) * units), AMOUNT_LIMIT - 1)
        containers.setdefault(sample.labels.get("container", ""), {})[name] = amount


def _resource(part_of_name: str) -> tuple[str, int]:
    """Return a resource's name in a pod's requests, and its units; no name for one not known.

    The metrics have `_` for `.`, `/` and `-`, so that the name of any other is not known.
    """
    if part := _MIG.fullmatch(part_of_name):
        slices, memory, media = part.groups(default="")
        return f"nvidia.com/mig-{slices}.{memory}{media.replace('_', '.')}", 1
    return _RESOURCES.get(part_of_name, ("", 0))


def _with_own(sample: Sample) -> Sample:
    """Return a sample with the labels that kube-state-metrics gave it."""
    labels = sample.labels
    own = {name: labels[_EXPORTED + name] for name in _OWN if _EXPORTED + name in labels}
    return Sample(labels={**labels, **own}, value=sample.value) if own else sample


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
