"""The Auto Scaling operations that the sandbox answers itself, by botocore's names on both sides.

Moto answers everything else: a group's settings, tags, hooks, protection, standby.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from reconciler.sandbox.aws.answers.paging import page
from reconciler.sandbox.aws.errors import Ec2Fault
from reconciler.sandbox.aws.scaling_region import ScalingRegion
from reconciler.sandbox.aws.state.scaling_group import Activity, GroupMember
from reconciler.sandbox.aws.world import Ec2World

Parameters = Mapping[str, Any]
Answer = Mapping[str, Any]
PAGE: Final = 100
REFRESH_SECONDS: Final = 3600.0
"""How long an instance refresh is in progress here; it does not replace instances."""
SCALING_OPERATIONS: Final = (
    "create_auto_scaling_group",
    "update_auto_scaling_group",
    "delete_auto_scaling_group",
    "describe_auto_scaling_groups",
    "set_desired_capacity",
    "terminate_instance_in_auto_scaling_group",
    "describe_scaling_activities",
    "complete_lifecycle_action",
    "record_lifecycle_action_heartbeat",
    "start_instance_refresh",
    "cancel_instance_refresh",
    "describe_instance_refreshes",
)


class ScalingOperations:
    """Auto Scaling over the wire. Every call is made inside the world's `turn`."""

    def __init__(self, world: Ec2World, now: Callable[[], datetime]) -> None:
        self._world = world
        self._now = now

    def create_auto_scaling_group(self, account: str, region: str, params: Parameters) -> None:
        """Let moto answer CreateAutoScalingGroup, and let time pass in the Region from now on."""
        self._groups(account, region)
        _check_bounds(params.get("MinSize"), params.get("DesiredCapacity"), params.get("MaxSize"))

    def update_auto_scaling_group(self, account: str, region: str, params: Parameters) -> None:
        """Check an UpdateAutoScalingGroup, and let moto answer it."""
        self._groups(account, region).group(params["AutoScalingGroupName"])

    def delete_auto_scaling_group(self, account: str, region: str, params: Parameters) -> None:
        """DeleteAutoScalingGroup: moto's own, for a group without instances unless it is forced.

        Raises:
            Ec2Fault: No such group, or it still has instances.
        """
        group = self._groups(account, region).group(params["AutoScalingGroupName"])
        if group.members and not params.get("ForceDelete"):
            what = "You cannot delete an AutoScalingGroup while there are instances or pending "
            raise Ec2Fault("ResourceInUse", f"{what}Spot instance request(s) still in the group.")

    def describe_auto_scaling_groups(self, account: str, region: str, _params: Parameters) -> None:
        """DescribeAutoScalingGroups: moto's own."""
        self._groups(account, region)

    def set_desired_capacity(self, account: str, region: str, params: Parameters) -> Answer:
        """SetDesiredCapacity within the group's limits.

        Raises:
            Ec2Fault: No such group, or the number is outside of its limits.
        """
        groups, name = self._groups(account, region), params["AutoScalingGroupName"]
        groups.group(name)
        shape, desired = groups.shape(name), int(params["DesiredCapacity"])
        _check_bounds(shape.min_size, desired, shape.max_size)
        groups.moto.set_desired(name, desired)
        return {}

    def terminate_instance_in_auto_scaling_group(
        self, account: str, region: str, params: Parameters
    ) -> Answer:
        """TerminateInstanceInAutoScalingGroup, with or without lowering the desired capacity."""
        decrement = bool(params.get("ShouldDecrementDesiredCapacity"))
        name, activity = self._groups(account, region).end(
            params["InstanceId"], decrement=decrement, now=self._now()
        )
        return {"Activity": _shown(name, activity)}

    def describe_scaling_activities(self, account: str, region: str, params: Parameters) -> Answer:
        """DescribeScalingActivities of one group or of all, newest first."""
        name = params.get("AutoScalingGroupName")
        found = self._groups(account, region).activities(name)
        shown, token = page(
            list(enumerate(found)),
            position=lambda each: each[0],
            limit=int(params.get("MaxRecords") or PAGE),
            token=params.get("NextToken"),
        )
        answer: dict[str, Any] = {"Activities": [_shown(*each) for _, each in shown]}
        return answer if token is None else {**answer, "NextToken": token}

    def complete_lifecycle_action(self, account: str, region: str, params: Parameters) -> Answer:
        """CompleteLifecycleAction: CONTINUE and ABANDON both end the wait of what terminates."""
        groups, name = self._groups(account, region), params["AutoScalingGroupName"]
        groups.complete(name, _waiting(groups, params), self._now())
        return {}

    def record_lifecycle_action_heartbeat(
        self, account: str, region: str, params: Parameters
    ) -> Answer:
        """RecordLifecycleActionHeartbeat: restarts the hook's timeout."""
        groups = self._groups(account, region)
        group = groups.group(params["AutoScalingGroupName"])
        group.heartbeat(_waiting(groups, params), self._now())
        return {}

    def start_instance_refresh(self, account: str, region: str, params: Parameters) -> Answer:
        """StartInstanceRefresh: in progress for an hour, or until it is cancelled."""
        group = self._groups(account, region).group(params["AutoScalingGroupName"])
        group.refreshes_until = self._now() + timedelta(seconds=REFRESH_SECONDS)
        return {"InstanceRefreshId": group.name}

    def cancel_instance_refresh(self, account: str, region: str, params: Parameters) -> Answer:
        """CancelInstanceRefresh."""
        group = self._groups(account, region).group(params["AutoScalingGroupName"])
        group.refreshes_until = None
        return {"InstanceRefreshId": group.name}

    def describe_instance_refreshes(self, account: str, region: str, params: Parameters) -> Answer:
        """DescribeInstanceRefreshes: the newest one, if there was one."""
        name = params["AutoScalingGroupName"]
        until = self._groups(account, region).group(name).refreshes_until
        if until is None:
            return {"InstanceRefreshes": []}
        status = "InProgress" if self._now() < until else "Successful"
        return {
            "InstanceRefreshes": [
                {"InstanceRefreshId": name, "AutoScalingGroupName": name, "Status": status}
            ]
        }

    def _groups(self, account: str, region: str) -> ScalingRegion:
        return self._world.region(account, region).groups


def _check_bounds(min_size: Any, desired: Any, max_size: Any) -> None:
    if desired is None or min_size is None or max_size is None:
        return
    if int(desired) > int(max_size):
        what = f"New SetDesiredCapacity value {desired} is above max value {max_size}"
        raise Ec2Fault("ValidationError", f"{what} for the AutoScalingGroup.")
    if int(desired) < int(min_size):
        what = f"New SetDesiredCapacity value {desired} is below min value {min_size}"
        raise Ec2Fault("ValidationError", f"{what} for the AutoScalingGroup.")


def _waiting(groups: ScalingRegion, params: Parameters) -> GroupMember:
    """Return the member that waits for a hook's action, named by its token or its instance."""
    group = groups.group(params["AutoScalingGroupName"])
    token, instance_id = params.get("LifecycleActionToken"), params.get("InstanceId")
    for member in group.members.values():
        named = member.token == token if token else member.instance_id == instance_id
        if named and member.hook is not None and member.hook.name == params["LifecycleHookName"]:
            return member
    raise Ec2Fault(
        "ValidationError", f"No active Lifecycle Action found with token {token or instance_id}"
    )


def _shown(name: str, activity: Activity) -> Answer:
    shown = {
        "ActivityId": activity.id,
        "AutoScalingGroupName": name,
        "Description": activity.description,
        "Cause": activity.cause,
        "StartTime": activity.started_at,
        "EndTime": activity.ended_at,
        "StatusCode": activity.status,
        "StatusMessage": activity.message or None,
        "Progress": 50 if activity.ended_at is None else 100,
        "Details": "{}",
    }
    return {key: value for key, value in shown.items() if value is not None}
