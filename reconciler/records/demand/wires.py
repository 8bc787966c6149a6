"""The JSON of one line of demand, as structs: what the keys are and how large values may be.

`lines` makes values of the model of them.
"""

from datetime import datetime
from typing import Annotated

from msgspec import Meta, Raw, Struct, field

from reconciler.model.demand import ControllerKind, FaultKind, PodManagementPolicy
from reconciler.model.volumes import EBS_DRIVER, ONE_NODE
from reconciler.records.demand.line_limits import (
    COUNT_MAX,
    NAME_LENGTH_MAX,
    TEN_YEARS_SECONDS,
)
from reconciler.records.kubernetes.fields import LabelSelectorWire, Quantity, Wire
from reconciler.records.kubernetes.limits import ACCESS_MODES_MAX, NAME_MAX, VOLUMES_MAX
from reconciler.records.kubernetes.pod_volumes import VolumeWire

Name = Annotated[str, Meta(min_length=1, max_length=NAME_LENGTH_MAX)]
Text = Annotated[str, Meta(max_length=NAME_LENGTH_MAX)]
Seconds = Annotated[float, Meta(ge=0, le=TEN_YEARS_SECONDS)]
Count = Annotated[int, Meta(ge=0, le=COUNT_MAX)]
Percentage = Annotated[str, Meta(pattern=r"^(100|[0-9]{1,2})%$")]
AccessModes = Annotated[tuple[Text, ...], Meta(min_length=1, max_length=ACCESS_MODES_MAX)]
NONE = Raw(b"null")


class LineWire(Struct, tag_field="kind", forbid_unknown_fields=True, gc=False):
    """What every line has."""

    t: datetime


class SpecPartsWire(Struct, gc=False):
    """The parts of a pod spec that `PodSpec` does not show.

    There must be containers, as the pod requests what they do.
    """

    containers: Raw
    volumes: tuple[VolumeWire, ...] | None = None


class TemplateMetadataWire(Wire):
    """metadata of a volumeClaimTemplate."""

    name: Annotated[str, Meta(min_length=1, max_length=NAME_MAX)]


class TemplateSpecWire(Wire):
    """spec of a volumeClaimTemplate."""

    storage_class_name: Text | None = None
    access_modes: AccessModes = (ONE_NODE,)


class ClaimTemplateWire(Wire):
    """One of a StatefulSet's volumeClaimTemplates, as in its manifest."""

    metadata: TemplateMetadataWire
    spec: TemplateSpecWire | None = None


class OwnerWire(Struct, forbid_unknown_fields=True, gc=False):
    """The controller of a pod."""

    kind: Name
    name: Name


class ControllerNameWire(Struct, forbid_unknown_fields=True, gc=False):
    """The controller that a line of kind `controller` is about."""

    kind: ControllerKind
    name: Name


class PodWire(LineWire, tag="pod"):
    """A line of kind `pod`."""

    id: Name
    spec: Raw
    namespace: Name = "default"
    controller: OwnerWire | None = None
    labels: Raw = NONE
    annotations: Raw = NONE
    ran_seconds: Seconds | None = None
    kept_seconds: Seconds | None = None
    until: datetime | None = None


class EndWire(LineWire, tag="end"):
    """A line of kind `end`."""

    id: Name
    ran_seconds: Seconds | None = None
    kept_seconds: Seconds | None = None


class ControllerWire(LineWire, tag="controller"):
    """A line of kind `controller`."""

    controller: ControllerNameWire
    namespace: Name = "default"
    replicas: Count | None = None
    spec: Raw = NONE
    labels: Raw = NONE
    annotations: Raw = NONE
    volume_claim_templates: Annotated[
        tuple[ClaimTemplateWire, ...], Meta(max_length=VOLUMES_MAX)
    ] = ()
    pod_management_policy: PodManagementPolicy | None = None
    deleted: bool = False


class BudgetWire(LineWire, tag="pdb"):
    """A line of kind `pdb`."""

    id: Name
    namespace: Name = "default"
    selector: LabelSelectorWire | None = None
    min_available: Count | Percentage | None = None
    max_unavailable: Count | Percentage | None = None
    deleted: bool = False


class CronWire(LineWire, tag="cron"):
    """A line of kind `cron`."""

    id: Name
    schedule: Text
    spec: Raw
    namespace: Name = "default"
    time_zone: Text = "UTC"
    labels: Raw = NONE
    annotations: Raw = NONE
    pods: Annotated[int, Meta(ge=1, le=100_000)] = 1
    ran_seconds: Seconds = 60.0
    until: datetime | None = None


class ClaimWire(LineWire, tag="claim"):
    """A line of kind `claim`."""

    id: Name
    namespace: Name = "default"
    zone: Text = ""
    storage_class: Text = ""
    driver: Name = EBS_DRIVER
    immediate: bool = False
    access_modes: AccessModes = (ONE_NODE,)
    deleted: bool = False


class FaultWire(LineWire, tag="fault"):
    """A line of kind `fault`."""

    fault: FaultKind
    fleet: Text = ""
    instance_type: Text = ""
    zone: Text = ""
    code: Text = "InsufficientInstanceCapacity"
    instances: Annotated[int, Meta(ge=1, le=100_000)] = 1
    seconds: Seconds = 0.0
    until: datetime | None = None


class FleetWire(LineWire, tag="fleet"):
    """A line of kind `fleet`."""

    fleet: Name
    target: Count
    joined: Count | None = field(default=None)


class NodeWire(LineWire, tag="node"):
    """A line of kind `node`."""

    instance_type: Name
    allocatable: dict[Name, Quantity]
    fleet: Text = ""


AnyWire = (
    PodWire
    | EndWire
    | ControllerWire
    | BudgetWire
    | CronWire
    | ClaimWire
    | FaultWire
    | FleetWire
    | NodeWire
)
