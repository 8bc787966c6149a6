"""Fleets and instances of the model in the form of EC2's describe calls; see `read_fleets`."""

from collections.abc import Iterable, Mapping
from typing import Any

from reconciler.model.fleet import Fleet, Instance
from reconciler.records.aws.fields import FLEET_ID_TAG, TEMPLATE_VERSION_TAG
from reconciler.records.times import rfc3339_exact

Json = dict[str, Any]


def encode_fleets(fleets: Iterable[Fleet]) -> Json:
    """Return a describe-fleets answer."""
    return {"Fleets": [_fleet(each) for each in fleets]}


def encode_instances(instances: Iterable[Instance]) -> Json:
    """Return a describe-instances answer."""
    return {"Reservations": [{"Instances": [_instance(each) for each in instances]}]}


def encode_history(fleet: Fleet) -> Json:
    """Return a describe-fleet-history answer with the fleet's errors."""
    return {
        "FleetId": fleet.id,
        "HistoryRecords": [
            {
                "EventType": "service-error",
                "Timestamp": rfc3339_exact(each.at),
                "EventInformation": {
                    "EventSubType": each.code,
                    "EventDescription": each.message,
                },
            }
            for each in fleet.capacity_errors
        ],
    }


def _tags(tags: Mapping[str, str]) -> list[Json]:
    return [{"Key": key, "Value": value} for key, value in sorted(tags.items())]


def _fleet(fleet: Fleet) -> Json:
    template = {
        "LaunchTemplateId": fleet.launch_template_id,
        "Version": fleet.launch_template_version,
    }
    overrides = [{"InstanceType": each} for each in fleet.instance_types]
    return {
        "FleetId": fleet.id,
        "FleetState": fleet.state,
        "ActivityStatus": fleet.activity_status,
        "Type": "maintain",
        "TargetCapacitySpecification": {"TotalTargetCapacity": fleet.target_capacity},
        "FulfilledCapacity": fleet.fulfilled_capacity,
        "LaunchTemplateConfigs": [
            {"LaunchTemplateSpecification": template, "Overrides": overrides}
        ],
        "Tags": _tags(fleet.tags),
    }


def _instance(instance: Instance) -> Json:
    own = {TEMPLATE_VERSION_TAG: instance.launch_template_version}
    if instance.fleet_id is not None:
        own[FLEET_ID_TAG] = instance.fleet_id
    found: Json = {
        "InstanceId": instance.id,
        "State": {"Name": instance.state},
        "InstanceType": instance.instance_type,
        "Placement": {"AvailabilityZone": instance.zone},
        "Tags": _tags({**instance.tags, **own}),
    }
    if instance.launched_at is not None:
        found["LaunchTime"] = rfc3339_exact(instance.launched_at)
    if instance.lifecycle == "spot":
        found["InstanceLifecycle"] = "spot"
    return found
