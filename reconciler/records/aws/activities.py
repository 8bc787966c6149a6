"""What scaling activities of Auto Scaling groups say of instances that went into service."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from reconciler.model.ids import InstanceId
from reconciler.records.aws.fields import Wire

SEEN: Final = "Seen"
"""Our own status of an instance whose activity Auto Scaling did not return: see `served_since`."""
_INTO_SERVICE: Final = re.compile(
    r"Launching a new EC2 instance(?: from warm pool)?: (i-[0-9a-f]+)", re.ASCII
)
"""How Auto Scaling describes that an instance goes into service. Source: output of
describe-scaling-activities, user guide and AWS's warm pool samples, read 2026-11."""


class ActivityWire(Wire):
    """One scaling activity."""

    auto_scaling_group_name: str
    status_code: str
    start_time: Any = None
    status_message: str | None = None
    description: str | None = None

    @property
    def into_service(self) -> InstanceId | None:
        """Return the instance that it took into service; None when it did something else."""
        return _into_service(self.status_code, self.description or "")


def into_service(activity: Mapping[str, Any]) -> InstanceId | None:
    """Return the instance that an activity took into service; None when it did something else."""
    return _into_service(activity.get("StatusCode", ""), activity.get("Description") or "")


def _into_service(status_code: str, description: str) -> InstanceId | None:
    found = None if status_code == "Failed" else _INTO_SERVICE.match(description)
    return None if found is None else InstanceId(found[1])


def served_since(group: str, instance: str, at: datetime) -> dict[str, Any]:
    """Return in the form of an activity that a group has listed the instance in service since then.

    It replaces an activity that Auto Scaling does not return.
    """
    return {
        "AutoScalingGroupName": group,
        "StatusCode": SEEN,
        "StartTime": at,
        "Description": f"Launching a new EC2 instance: {instance}",
    }
