"""Fleets, groups and instances of the model in the form of AWS's describe calls.

See `read_fleets` and `read_groups`.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from reconciler.model.fleet import Fleet, Instance
from reconciler.model.ids import FleetId
from reconciler.records.aws.fields import FLEET_ID_TAG, GROUP_NAME_TAG, TEMPLATE_VERSION_TAG
from reconciler.records.times import rfc3339_exact

Json = dict[str, Any]


def encode_fleets(fleets: Iterable[Fleet]) -> Json:
    """Return a describe-fleets answer."""
    return {"Fleets": [_fleet(fleet) for fleet in fleets]}


def encode_groups(groups: Iterable[Fleet], instances: Iterable[Instance]) -> Json:
    """Return a describe-auto-scaling-groups answer.

    Args:
        groups: The groups.
        instances: Instances, among them the members of the groups.
    """
    members: dict[str, list[Instance]] = {}
    for instance in instances:
        if instance.fleet_id is not None:
            members.setdefault(instance.fleet_id, []).append(instance)
    return {"AutoScalingGroups": [_group(group, members.get(group.id, ())) for group in groups]}


def encode_instances(instances: Iterable[Instance], groups: Collection[FleetId] = ()) -> Json:
    """Return a describe-instances answer.

    Args:
        instances: The instances.
        groups: Which of their fleets are Auto Scaling groups.
    """
    return {
        "Reservations": [{"Instances": [_instance(instance, groups) for instance in instances]}]
    }


def encode_history(fleet: Fleet) -> Json:
    """Return a describe-fleet-history answer with the fleet's errors."""
    return {
        "FleetId": fleet.id,
        "HistoryRecords": [
            {
                "EventType": "service-error",
                "Timestamp": rfc3339_exact(launch_error.at),
                "EventInformation": {
                    "EventSubType": launch_error.code,
                    "EventDescription": launch_error.message,
                },
            }
            for launch_error in fleet.launch_errors
        ],
    }


def encode_activities(groups: Iterable[Fleet]) -> Json:
    """Return a describe-scaling-activities answer with the failed launches of groups."""
    return {
        "Activities": [
            {
                "ActivityId": f"{group.id}-{number}",
                "AutoScalingGroupName": group.id,
                "Description": "Launching a new EC2 instance.",
                "StartTime": rfc3339_exact(fleet_event.at),
                "StatusCode": "Failed",
                "StatusMessage": f"{fleet_event.code} {fleet_event.message}".strip(),
            }
            for group in groups
            for number, fleet_event in enumerate(group.launch_errors)
        ]
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


def _group(group: Fleet, members: Iterable[Instance]) -> Json:
    template = {
        "LaunchTemplateId": group.launch_template_id,
        "Version": group.launch_template_version,
    }
    spot = group.lifecycle == "spot"
    found: Json = {
        "AutoScalingGroupName": group.id,
        "DesiredCapacity": group.target_capacity,
        "MinSize": group.min_size or 0,
        "MixedInstancesPolicy": {
            "LaunchTemplate": {
                "LaunchTemplateSpecification": template,
                "Overrides": [{"InstanceType": each} for each in group.instance_types],
            },
            "InstancesDistribution": {"OnDemandPercentageAboveBaseCapacity": 0 if spot else 100},
        },
        "AvailabilityZones": list(group.zones),
        "SuspendedProcesses": [] if group.rebalances_zones else [{"ProcessName": "AZRebalance"}],
        "Instances": [_member(member) for member in members if not member.gone],
        "Tags": _tags(group.tags),
    }
    if group.max_size is not None:
        found["MaxSize"] = group.max_size
    return found


def _member(instance: Instance) -> Json:
    return {
        "InstanceId": instance.id,
        "InstanceType": instance.instance_type,
        "AvailabilityZone": instance.zone,
        "LifecycleState": "Standby" if instance.set_aside else "InService",
        "ProtectedFromScaleIn": instance.protected,
    }


def _instance(instance: Instance, groups: Collection[FleetId]) -> Json:
    own = {TEMPLATE_VERSION_TAG: instance.launch_template_version}
    if instance.fleet_id is not None:
        in_group = instance.fleet_id in groups
        own[GROUP_NAME_TAG if in_group else FLEET_ID_TAG] = instance.fleet_id
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
