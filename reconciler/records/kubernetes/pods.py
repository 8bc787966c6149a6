"""Pods and pod templates, decoded so that replicas share one PodSpec and one set of labels."""

import sys
from datetime import datetime
from typing import cast, get_args

from msgspec import Raw, Struct, field
from msgspec.json import Decoder, Encoder

from reconciler.model.actions import DO_NOT_DISRUPT
from reconciler.model.cluster import DEFAULT_SCHEDULER, Owner, Pod, PodPhase, PodSpec, QosClass
from reconciler.model.containers import ContainerKind, ContainerState
from reconciler.model.frozen import NO_LABELS, FrozenMap, Labels
from reconciler.model.ids import NodeName, PodKey
from reconciler.model.interning import InternTable
from reconciler.records.kubernetes.fields import (
    NULL,
    OwnerReferenceWire,
    PresentWire,
    Wire,
    required_name,
    utc,
)
from reconciler.records.kubernetes.limits import CONTAINERS_MAX, HANDLE_MAX, NAME_MAX, VOLUMES_MAX
from reconciler.records.kubernetes.pod_labels import LabelDecoder
from reconciler.records.kubernetes.pod_spec import decode_pod_spec
from reconciler.records.kubernetes.pod_volumes import (
    VolumeWire,
    claims_of,
    excess_of,
    is_local_storage,
)
from reconciler.records.kubernetes.resizes import (
    ContainerPartsWire,
    HoldingWire,
    apply_resizes,
    counted_resources,
)

SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
SCALE_DOWN_DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
KARPENTER_DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
CONFIG_MIRROR = "kubernetes.io/config.mirror"

SPECS_MAX = 8_192
"""Distinct specs kept per generation, at 5 kB each. Every DaemonSet pod has one of its own (with
its node's name), also those of nodes that are gone."""
USUAL_BYTES = 4_096
"""The largest JSON of a usual spec: larger ones, up to the 1 MiB that the API server accepts, count
as several, so that a client cannot fill memory with specs that are never seen again."""
_BUILT_IN_PRIORITIES = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
"""Of the classes that every cluster has. Admission puts the number into each pod, but into no
template; other classes are not read, and a template that names one counts with 0."""
ANNOTATION_MAX = 64
"""How many characters of an annotation's value are kept: decisions look for a word."""


class _AnnotationsWire(Struct, gc=False):
    do_not_disrupt: str | None = field(name=DO_NOT_DISRUPT, default=None)
    safe_to_evict: str | None = field(name=SAFE_TO_EVICT, default=None)
    scale_down_disabled: str | None = field(name=SCALE_DOWN_DISABLED, default=None)
    karpenter_do_not_disrupt: str | None = field(name=KARPENTER_DO_NOT_DISRUPT, default=None)
    config_mirror: str | None = field(name=CONFIG_MIRROR, default=None)


class _PodMetadataWire(Wire):
    name: str
    namespace: str | None = None
    uid: str | None = None
    labels: Raw = NULL
    annotations: _AnnotationsWire | None = None
    owner_references: tuple[OwnerReferenceWire, ...] | None = None
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None


class _SpecWire(Wire, omit_defaults=True):
    """A spec whose shared parts stay raw until an equal spec is first seen."""

    node_name: str | None = None
    volumes: tuple[VolumeWire, ...] | None = None
    scheduling_gates: tuple[PresentWire, ...] | None = None
    containers: tuple[ContainerPartsWire, ...] | None = None
    init_containers: tuple[ContainerPartsWire, ...] | None = None
    node_selector: Raw = NULL
    affinity: Raw = NULL
    tolerations: Raw = NULL
    topology_spread_constraints: Raw = NULL
    resource_claims: tuple[PresentWire, ...] | None = None
    overhead: Raw = NULL
    resources: Raw = NULL
    priority: int | None = None
    restart_policy: str | None = None
    priority_class_name: str | None = None
    preemption_policy: str | None = None
    scheduler_name: str | None = None
    termination_grace_period_seconds: int | None = None
    host_network: bool | None = None


class _ConditionWire(Wire):
    type: str = ""
    status: str = ""
    reason: str | None = None
    last_transition_time: datetime | None = None


class _WaitingWire(Wire):
    reason: str | None = None


class _TerminatedWire(Wire):
    reason: str | None = None
    exit_code: int | None = None
    finished_at: datetime | None = None


class _ContainerStateWire(Wire):
    waiting: _WaitingWire | None = None
    terminated: _TerminatedWire | None = None


class _ContainerStatusWire(HoldingWire):
    state: _ContainerStateWire | None = None
    last_state: _ContainerStateWire | None = None
    restart_count: int | None = None


class _StatusWire(Wire):
    phase: str | None = None
    reason: str | None = None
    qos_class: str | None = None
    conditions: tuple[_ConditionWire, ...] | None = None
    start_time: datetime | None = None
    nominated_node_name: str | None = None
    resources: Raw = NULL
    allocated_resources: Raw = NULL
    container_statuses: tuple[_ContainerStatusWire, ...] | None = None
    init_container_statuses: tuple[_ContainerStatusWire, ...] | None = None
    ephemeral_container_statuses: tuple[_ContainerStatusWire, ...] | None = None


class _PodWire(Wire):
    metadata: _PodMetadataWire
    spec: _SpecWire
    status: _StatusWire | None = None


PHASES: frozenset[str] = frozenset(get_args(PodPhase))
QOS_CLASSES: frozenset[str] = frozenset(get_args(QosClass))
_UNSCHEDULABLE = "Unschedulable"
_POD = Decoder(_PodWire)
_SPEC = Decoder(_SpecWire)
_SHARED = Encoder()


class PodDecoder:
    """Decodes Kubernetes JSON into pods; each distinct spec and label set is built once.

    The key of a spec is the JSON of the fields that a decision can depend on. What differs between
    replicas (node, names of injected volumes, claims, gates) is removed first.
    """

    def __init__(self) -> None:
        self._specs_by_json: InternTable[tuple[bytes, bool, str], PodSpec] = InternTable(SPECS_MAX)
        self._specs: InternTable[PodSpec, PodSpec] = InternTable(SPECS_MAX)
        self._labels = LabelDecoder(SPECS_MAX, USUAL_BYTES)

    def pod(self, raw: bytes | Raw) -> Pod:
        """Decode one pod.

        Raises:
            ValueError: It cannot be read.
        """
        wire = _POD.decode(raw)
        metadata, spec, status = wire.metadata, wire.spec, wire.status or _StatusWire()
        phase = status.phase or "Pending"
        if phase not in PHASES:
            raise ValueError(f"status.phase is {phase[:40]!r}")
        name = required_name(metadata.name)
        volumes = (spec.volumes or ())[:VOLUMES_MAX]
        node_name, gated = spec.node_name, bool(spec.scheduling_gates)
        containers = status.container_statuses or ()
        created, started = utc(metadata.creation_timestamp), utc(status.start_time)
        _put_holdings(spec, status)
        labels = self._labels.decode(metadata.labels)
        return Pod(
            key=PodKey(
                namespace=sys.intern(metadata.namespace or "default"),
                name=name,
                uid=metadata.uid or "",
            ),
            spec=labels.marked(self._shared_spec(spec)),
            labels=labels.kept,
            annotations=_annotations(metadata.annotations),
            owner=_owner(metadata.owner_references),
            phase=cast("PodPhase", phase),
            node_name=NodeName(sys.intern(node_name)) if node_name else None,
            nominated_node_name=_optional_node(status.nominated_node_name),
            claims=claims_of(name, volumes),
            ebs_volume_ids=tuple(
                volume.aws_elastic_block_store.handle[:HANDLE_MAX]
                for volume in volumes
                if volume.aws_elastic_block_store
            ),
            gated=gated,
            left_to_scheduler=not node_name and _is_left_to_scheduler(spec, status),
            mirror=metadata.annotations is not None
            and metadata.annotations.config_mirror is not None,
            deleting=metadata.deletion_timestamp is not None,
            ready=_true_condition(status, "Ready") is not None,
            created_at=created,
            deletion_at=utc(metadata.deletion_timestamp),
            scheduled_at=_scheduled_at(status, created, started),
            started_at=started,
            finished_at=_finished_at(status, containers)
            if phase in {"Succeeded", "Failed"}
            else None,
            restarts=sum(max(0, container.restart_count or 0) for container in containers),
            qos=cast("QosClass", status.qos_class) if status.qos_class in QOS_CLASSES else None,
            reason=sys.intern(status.reason[:ANNOTATION_MAX]) if status.reason else "",
            containers=_noticeable(status),
        )

    def template_spec(self, raw: bytes | Raw) -> PodSpec:
        """Decode the spec of a pod template; raise ValueError when it cannot be read."""
        return self._shared_spec(_SPEC.decode(raw))

    def labels(self, raw: Raw) -> Labels:
        """Decode labels; equal JSON gives one object. Raise ValueError when they are not labels."""
        return self._labels.decode(raw).kept

    def _shared_spec(self, spec: _SpecWire) -> PodSpec:
        local = any(map(is_local_storage, spec.volumes or ()))
        excess = excess_of(spec.volumes or ())
        if spec.priority is None:
            spec.priority = _BUILT_IN_PRIORITIES.get(spec.priority_class_name or "")
        spec.priority_class_name = None
        if spec.restart_policy == "Always":
            spec.restart_policy = None
        spec.node_name = spec.volumes = spec.scheduling_gates = None
        shared = _SHARED.encode(spec)
        key = (shared, local, excess)
        pod_spec = self._specs_by_json.get(key)
        if pod_spec is None:
            built = decode_pod_spec(shared, local_storage=local, excess=excess)
            pod_spec = self._specs.get_or_build(built, lambda: built, weight=_weight(shared))
            self._specs_by_json.put(key, pod_spec, weight=_weight(shared))
        return pod_spec


def _put_holdings(spec: _SpecWire, status: _StatusWire) -> None:
    """Make a pod that is being resized count as one that requests what it holds."""

    def cannot_be_resized() -> bool:
        return _cannot_be_resized(status.conditions or ())

    apply_resizes(spec.containers or (), status.container_statuses or (), cannot_be_resized)
    if status.init_container_statuses:
        sidecars = [c for c in spec.init_containers or () if c.restart_policy == "Always"]
        apply_resizes(sidecars, status.init_container_statuses, cannot_be_resized)
    if spec.resources is not NULL and status.resources is not NULL:
        spec.resources = counted_resources(
            spec.resources,
            status.resources,
            status.allocated_resources,
            cannot_be_resized=cannot_be_resized(),
            of_pod=True,
        )


def _true_condition(status: _StatusWire, name: str) -> _ConditionWire | None:
    found = (c for c in status.conditions or () if c.type == name and c.status == "True")
    return next(found, None)


def _is_left_to_scheduler(spec: _SpecWire, status: _StatusWire) -> bool:
    """Return whether a scheduler other than Kubernetes' own has yet to place or refuse the pod.

    Schedulers tell autoscalers by this condition that no node takes a pod.
    """
    if (spec.scheduler_name or DEFAULT_SCHEDULER) == DEFAULT_SCHEDULER:
        return False
    return not any(
        (condition.type, condition.status, condition.reason)
        == ("PodScheduled", "False", _UNSCHEDULABLE)
        for condition in status.conditions or ()
    )


def _scheduled_at(status: _StatusWire, *others: datetime | None) -> datetime | None:
    """Return when it was bound.

    An equal other time of the pod if there is one, to keep one object.
    """
    condition = _true_condition(status, "PodScheduled")
    at = None if condition is None else utc(condition.last_transition_time)
    return next((other for other in others if other == at), at)


def _cannot_be_resized(conditions: tuple[_ConditionWire, ...]) -> bool:
    """Return whether a resize is impossible, as component-helpers' IsPodResizeInfeasible."""
    pending = next((c for c in conditions if c.type == "PodResizePending"), None)
    return pending is not None and pending.reason == "Infeasible"


def _weight(raw: bytes) -> int:
    """Return as how many usual entries a spec of this size counts in the bounded table."""
    return 1 + len(raw) // USUAL_BYTES


def _optional_node(name: str | None) -> NodeName | None:
    return NodeName(name[:NAME_MAX]) if name else None


def _annotations(wire: _AnnotationsWire | None) -> Labels:
    if wire is None:
        return NO_LABELS
    pairs = (
        (DO_NOT_DISRUPT, wire.do_not_disrupt),
        (SAFE_TO_EVICT, wire.safe_to_evict),
        (SCALE_DOWN_DISABLED, wire.scale_down_disabled),
        (KARPENTER_DO_NOT_DISRUPT, wire.karpenter_do_not_disrupt),
    )
    kept = {key: value[:ANNOTATION_MAX] for key, value in pairs if value is not None}
    return FrozenMap(kept) if kept else NO_LABELS


def _owner(references: tuple[OwnerReferenceWire, ...] | None) -> Owner | None:
    for reference in references or ():
        if reference.controller:
            return Owner(
                kind=sys.intern(reference.kind[:NAME_MAX]),
                name=reference.name[:NAME_MAX],
                uid=reference.uid[:NAME_MAX],
            )
    return None


def _noticeable(status: _StatusWire) -> tuple[ContainerState, ...]:
    """Return the containers that wait, have ended or restarted, at most `CONTAINERS_MAX`."""
    every: tuple[tuple[ContainerKind, tuple[_ContainerStatusWire, ...] | None], ...] = (
        ("container", status.container_statuses),
        ("init", status.init_container_statuses),
        ("ephemeral", status.ephemeral_container_statuses),
    )
    container_states = [
        _container_state(kind, status)
        for kind, statuses in every
        for status in statuses or ()
        if _is_noticeable(status)
    ]
    return tuple(container_states[:CONTAINERS_MAX])


def _is_noticeable(each: _ContainerStatusWire) -> bool:
    state = each.state
    waits_or_ended = state is not None and (state.waiting or state.terminated) is not None
    return waits_or_ended or (each.restart_count or 0) > 0


def _container_state(kind: ContainerKind, each: _ContainerStatusWire) -> ContainerState:
    state = each.state or _ContainerStateWire()
    waiting, ended = state.waiting or _WaitingWire(), state.terminated or _TerminatedWire()
    return ContainerState(
        kind=kind,
        waiting=sys.intern((waiting.reason or "")[:ANNOTATION_MAX]),
        terminated=sys.intern((ended.reason or "")[:ANNOTATION_MAX]),
        exit_code=ended.exit_code,
        restarts=max(0, each.restart_count or 0),
        ended_at=_ended_at(each),
    )


def _ended_at(each: _ContainerStatusWire) -> datetime | None:
    """Return when a container last ended: now for good, or before it was restarted."""
    found = (state.terminated for state in (each.state, each.last_state) if state is not None)
    return next((utc(ended.finished_at) for ended in found if ended is not None), None)


def _finished_at(
    status: _StatusWire, containers: tuple[_ContainerStatusWire, ...]
) -> datetime | None:
    """Return when its last container ended; else when the pod stopped being ready."""
    ends = [
        container.state.terminated.finished_at
        for container in containers
        if container.state and container.state.terminated and container.state.terminated.finished_at
    ]
    if not ends:
        ends = [
            condition.last_transition_time
            for condition in status.conditions or ()
            if condition.type == "Ready" and condition.last_transition_time
        ]
    return max((moment for end in ends if (moment := utc(end))), default=None)
