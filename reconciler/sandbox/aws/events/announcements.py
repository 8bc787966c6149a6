"""The events of EC2 and AWS Health about instances, for existing EventBridge rules.

Sources: EC2 user guide, "Spot Instance interruption notices", "EC2 instance rebalance
recommendations", "Automate Amazon EC2 using EventBridge"; AWS Health user guide, "Reference: AWS
Health events Amazon EventBridge schema".
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Final, Literal

from reconciler.sandbox.aws.region import Ec2Region
from reconciler.sandbox.aws.values import Announcement

AnnouncementKind = Literal["rebalance", "scheduled-change"]

SCHEDULED_CODE: Final = "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED"
SCHEDULED_HOURS: Final = 2
"""How long a scheduled change takes."""


def interruption(instance_id: str) -> Announcement:
    """Return the event that EC2 takes a spot instance back in two minutes."""
    return Announcement(
        source="aws.ec2",
        detail_type="EC2 Spot Instance Interruption Warning",
        instance_ids=[instance_id],
        detail={"instance-id": instance_id, "instance-action": "terminate"},
    )


def rebalance(instance_id: str) -> Announcement:
    """Return the event that a spot instance is more likely to be taken back."""
    return Announcement(
        source="aws.ec2",
        detail_type="EC2 Instance Rebalance Recommendation",
        instance_ids=[instance_id],
        detail={"instance-id": instance_id},
    )


def state_change(instance_id: str, state: str) -> Announcement:
    """Return the event that an instance has another state."""
    return Announcement(
        source="aws.ec2",
        detail_type="EC2 Instance State-change Notification",
        instance_ids=[instance_id],
        detail={"instance-id": instance_id, "state": state},
    )


def scheduled_change(instance_ids: Sequence[str], starts_at: datetime) -> Announcement:
    """Return the event that the hardware of instances will be retired."""
    starts_at = starts_at.astimezone(UTC)
    return Announcement(
        source="aws.health",
        detail_type="AWS Health Event",
        instance_ids=instance_ids,
        detail={
            "service": "EC2",
            "eventTypeCode": SCHEDULED_CODE,
            "eventTypeCategory": "scheduledChange",
            "startTime": format_datetime(starts_at, usegmt=True),
            "endTime": format_datetime(starts_at + timedelta(hours=SCHEDULED_HOURS), usegmt=True),
            "statusCode": "upcoming",
            "affectedEntities": [{"entityValue": each} for each in instance_ids],
        },
    )


@dataclass(slots=True)
class StateChanges:
    """Announces every new state of an instance while there are rules that could match."""

    _announced: dict[str, str] = field(default_factory=dict)

    def tell(self, region: Ec2Region, at: datetime) -> None:
        """Announce the states that differ from those of the last call."""
        if not region.moto.has_event_rules:
            return
        for instance_id, instance in region.instances().items():
            if self._announced.get(instance_id) != instance.state:
                self._announced[instance_id] = instance.state
                region.moto.announce(state_change(instance_id, instance.state), at)
