"""The history of a fleet for DescribeFleetHistory, in EC2's words.

Source: EC2 user guide, "Monitor your EC2 Fleet" (event types and sub-types). The API reference
names the types instance-change, fleet-change and service-error; answers carry other words.
"""

import copy
import json
from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType

from reconciler.sandbox.aws.values import HistoryRecord, LaunchRefusal, Member, Pool

_SUB_TYPES: Mapping[str, str] = MappingProxyType(
    {"MaxSpotInstanceCountExceeded": "spotInstanceCountLimitExceeded"}
)
_FILTERS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "instance-change": frozenset({"instanceChange"}),
        "fleet-change": frozenset({"fleetRequestChange"}),
        "service-error": frozenset({"error"}),
    }
)
_ALL_BLACKLISTED = (
    "Several attempts to launch instances have failed. Either the request could not be satisfied "
    "or the configuration is not valid. We will retry the request again later. "
    "For more information, see the description of the event."
)


class FleetHistory:
    """The records of one fleet, oldest first."""

    def __init__(self, created_at: datetime, retry_seconds: float) -> None:
        self._retry_minutes = max(1, round(retry_seconds / 60))
        self._records: list[HistoryRecord] = []
        self.fleet_change("submitted", created_at)

    def as_it_is(self) -> "FleetHistory":
        """Return a copy of the records up to now."""
        still = copy.copy(self)
        still._records = list(self._records)  # noqa: SLF001 - of its own class
        return still

    def select(self, *, since: datetime, event_type: str | None) -> tuple[HistoryRecord, ...]:
        """Return the records from `since` on, of one type as DescribeFleetHistory names it."""
        wanted = _FILTERS.get(event_type or "")
        return tuple(
            record
            for record in self._records
            if record.at >= since and (wanted is None or record.event_type in wanted)
        )

    def fleet_change(self, sub_type: str, at: datetime) -> None:
        """Record that the fleet changed its state."""
        self._records.append(
            HistoryRecord(event_type="fleetRequestChange", sub_type=str(sub_type), at=at)
        )

    def instance_change(
        self, sub_type: str, at: datetime, instance_id: str, description: str | None = None
    ) -> None:
        """Record that an instance was launched or ended."""
        self._records.append(
            HistoryRecord(
                event_type="instanceChange",
                sub_type=sub_type,
                at=at,
                description=description,
                instance_id=instance_id,
            )
        )

    def launched(self, member: Member, at: datetime) -> None:
        """Record that an instance was launched; its description is JSON, as EC2's is."""
        pool = member.pool
        description = json.dumps(
            {
                "instanceType": pool.instance_type,
                "image": pool.image_id,
                "productDescription": "Linux/UNIX",
                "availabilityZone": pool.zone,
                "lifecycle": member.lifecycle,
            }
        )
        self.instance_change("launched", at, member.instance_id, description)

    def refused(self, pool: Pool, refusal: LaunchRefusal, at: datetime) -> None:
        """Record that a pool refused: the error, and that the pool is not used for a while."""
        place = f"{pool.instance_type}, {pool.image_id or 'ami'}, Linux/UNIX, {pool.zone}"
        cause = f"{refusal.message} (Service: AmazonEC2; Error Code: {refusal.code})"
        self._records.append(
            HistoryRecord(
                event_type="error",
                sub_type=_SUB_TYPES.get(refusal.code, refusal.code),
                at=at,
                description=f"{place}: {cause}",
            )
        )
        self._records.append(
            HistoryRecord(
                event_type="information",
                sub_type="launchSpecTemporarilyBlacklisted",
                at=at,
                description=(
                    f"{place}, Repeated errors have occurred processing the launch specification. "
                    f"It will not be retried for at least {self._retry_minutes} minutes. "
                    f"Error message: {cause}"
                ),
            )
        )

    def all_blacklisted(self, at: datetime) -> None:
        """Record that no pool of the fleet is used for a while."""
        self._records.append(
            HistoryRecord(
                event_type="error",
                sub_type="allLaunchSpecsTemporarilyBlacklisted",
                at=at,
                description=_ALL_BLACKLISTED,
            )
        )
