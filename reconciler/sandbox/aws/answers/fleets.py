"""The EC2 operations that the sandbox answers itself, by botocore's names on both sides."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any

from reconciler.sandbox.aws.answers.paging import page
from reconciler.sandbox.aws.errors import Ec2Fault, fleet_not_found
from reconciler.sandbox.aws.region import Ec2Region
from reconciler.sandbox.aws.state.fleet import Fleet
from reconciler.sandbox.aws.state.launcher import EndReason
from reconciler.sandbox.aws.state.requests import parse_create, parse_modify, parse_tags
from reconciler.sandbox.aws.values import FleetState, LaunchRefusal, Lifecycle, Member, Pool
from reconciler.sandbox.aws.world import Ec2World

Parameters = Mapping[str, Any]
Answer = Mapping[str, Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_LAUNCH_TIME = "launch-time"


class FleetOperations:
    """EC2 Fleet over the wire. Every call is made inside the world's `turn`."""

    def __init__(self, world: Ec2World, now: Callable[[], datetime]) -> None:
        self._world = world
        self._now = now

    def create_fleet(self, account: str, region: str, params: Parameters) -> Answer:
        """CreateFleet; only an instant fleet answers with its instances and errors."""
        place = self._world.region(account, region)
        request = parse_create(params, place.moto)
        fleet = place.create_fleet(request, parse_tags(params, "fleet"), self._now())
        if request.fleet_type != "instant":
            return {"FleetId": fleet.id}
        return {
            "FleetId": fleet.id,
            "Instances": [_launched(member) for member in fleet.members],
            "Errors": [_refused(*refusal) for refusal in fleet.refusals],
        }

    def modify_fleet(self, account: str, region: str, params: Parameters) -> Answer:
        """ModifyFleet: absolute values, the fleet is `modifying` for a while."""
        place = self._world.region(account, region)
        place.fleet(params["FleetId"])
        place.modify_fleet(params["FleetId"], parse_modify(params, place.moto), self._now())
        return {"Return": True}

    def describe_fleets(self, account: str, region: str, params: Parameters) -> Answer:
        """DescribeFleets with ids, filters and pages; instant fleets only when named."""
        place = self._world.region(account, region)
        wanted = params.get("FleetIds") or []
        for fleet_id in wanted:
            place.fleet(fleet_id)
        numbered = [
            (number, fleet)
            for number, fleet in enumerate(place.fleets.values())
            if (fleet.id in wanted if wanted else fleet.request.fleet_type != "instant")
            and _matches(fleet, place.moto.tags(fleet.id), params.get("Filters") or [])
        ]
        shown, token = _page(numbered, params)
        fleets = [_described(fleet, place.moto.tags(fleet.id)) for _, fleet in shown]
        return _without_none({"Fleets": fleets, "NextToken": token})

    def describe_fleet_instances(self, account: str, region: str, params: Parameters) -> Answer:
        """DescribeFleetInstances: the members that count, pending ones too."""
        fleet = self._world.region(account, region).fleet(params["FleetId"])
        numbered = [(member.number, member) for member in _filtered_members(fleet, params)]
        shown, token = _page(numbered, params)
        return _without_none(
            {
                "ActiveInstances": [_active(member) for _, member in shown],
                "FleetId": fleet.id,
                "NextToken": token,
            }
        )

    def describe_fleet_history(self, account: str, region: str, params: Parameters) -> Answer:
        """DescribeFleetHistory from `StartTime` on, oldest first."""
        fleet = self._world.region(account, region).fleet(params["FleetId"])
        since = params.get("StartTime") or _EPOCH
        since = since if since.tzinfo else since.replace(tzinfo=UTC)
        records = fleet.history.select(since=since, event_type=params.get("EventType"))
        shown, token = _page(list(enumerate(records)), params)
        return _without_none(
            {
                "FleetId": fleet.id,
                "StartTime": since,
                "LastEvaluatedTime": shown[-1][1].at if shown else since,
                "NextToken": token,
                "HistoryRecords": [
                    {
                        "EventType": record.event_type,
                        "Timestamp": record.at,
                        "EventInformation": _without_none(
                            {
                                "EventSubType": record.sub_type,
                                "EventDescription": record.description,
                                "InstanceId": record.instance_id,
                            }
                        ),
                    }
                    for _, record in shown
                ],
            }
        )

    def delete_fleets(self, account: str, region: str, params: Parameters) -> Answer:
        """DeleteFleets: each id separately; what cannot be deleted is listed with its reason."""
        place = self._world.region(account, region)
        terminate = bool(params.get("TerminateInstances"))
        done: list[Answer] = []
        refused: list[Answer] = []
        for fleet_id in params.get("FleetIds") or []:
            problem = _deletion_problem(place, fleet_id, terminate=terminate)
            if problem is not None:
                refused.append({"FleetId": fleet_id, "Error": problem})
                continue
            fleet = place.fleet(fleet_id)
            previous = fleet.state
            place.delete_fleet(fleet, terminate=terminate, now=self._now())
            done.append(
                {
                    "FleetId": fleet_id,
                    "PreviousFleetState": str(previous),
                    "CurrentFleetState": str(fleet.state),
                }
            )
        return {"SuccessfulFleetDeletions": done, "UnsuccessfulFleetDeletions": refused}

    def terminate_instances(self, account: str, region: str, params: Parameters) -> Answer | None:
        """TerminateInstances of fleet members; calls without any are left to moto.

        Raises:
            Ec2Fault: An id is unknown or protected; then nothing is terminated.
        """
        place = self._world.region(account, region)
        ids = list(dict.fromkeys(params.get("InstanceIds") or []))
        members = [i for i in ids if place.is_member(i)]
        if not members:
            return None
        before = place.moto.check_terminable(ids)
        place.terminate(members, self._now(), EndReason.USER)
        place.moto.terminate([i for i in ids if not place.is_member(i)])
        after = place.moto.check_terminable(ids)
        return {
            "TerminatingInstances": [
                {
                    "InstanceId": i,
                    "PreviousState": _state(*before[i]),
                    "CurrentState": _state(*after[i]),
                }
                for i in ids
            ]
        }

    def describe_instances(self, account: str, region: str, params: Parameters) -> Answer:
        """DescribeInstances: moto's instances, paged so that nothing is lost between two pages.

        Moto's own token is the last reservation's id, which fails when it no longer matches.
        """
        place = self._world.region(account, region)
        ids = params.get("InstanceIds") or []
        if ids and params.get("MaxResults"):
            raise Ec2Fault(
                "InvalidParameterCombination",
                "The parameter instancesSet cannot be used with the parameter maxResults",
            )
        filters = {f["Name"]: f.get("Values", []) for f in params.get("Filters") or []}
        launched = filters.pop(_LAUNCH_TIME, None)
        known = [
            (number, reservation)
            for number, reservation in place.moto.reservations(ids, filters)
            if reservation.instances[0].id not in place.hidden
            and _was_launched(reservation.instances[0], launched)
        ]
        shown, token = _page(known, params)
        return _without_none({"Reservations": [r for _, r in shown], "NextToken": token})

    def create_launch_template(
        self, account: str, region: str, params: Parameters
    ) -> Answer | None:
        """Answer a CreateLaunchTemplate whose client token was used before; moto answers others."""
        token, name = params.get("ClientToken") or "", params.get("LaunchTemplateName") or ""
        known = self._world.region(account, region).moto.template_tokens.made(token, name)
        return None if known is None else {"LaunchTemplate": dict(known)}

    def describe_launch_templates(self, account: str, region: str, params: Parameters) -> None:
        """Correct the templates, and let moto answer DescribeLaunchTemplates.

        As in EC2, the call is refused if it names a template that does not exist.
        """
        self.describe_launch_template_versions(account, region, params)
        ids, names = (params.get(f"LaunchTemplate{each}s") or () for each in ("Id", "Name"))
        self._world.region(account, region).moto.check_templates(ids, names)

    def describe_launch_template_versions(
        self, account: str, region: str, _params: Parameters
    ) -> None:
        """Correct the templates, and let moto answer DescribeLaunchTemplateVersions."""
        self._world.region(account, region).moto.refresh_templates()


def _was_launched(instance: Any, patterns: Sequence[str] | None) -> bool:
    """Return whether an instance passes the filter that moto lacks; `*` matches any characters."""
    if patterns is None:
        return True
    moment = instance.launch_time.strftime("%Y-%m-%dT%H:%M:%S.000Z")
    return any(fnmatchcase(moment, pattern) for pattern in patterns)


def _page(
    numbered: Sequence[tuple[int, Any]], params: Parameters
) -> tuple[list[tuple[int, Any]], str | None]:
    return page(
        numbered,
        position=lambda item: item[0],
        limit=params.get("MaxResults"),
        token=params.get("NextToken"),
    )


def _without_none(answer: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in answer.items() if value is not None}


def _state(code: int, name: str) -> Answer:
    return {"Code": code, "Name": name}


def _matches(fleet: Fleet, tags: Mapping[str, str], filters: Sequence[Parameters]) -> bool:
    """Return whether a fleet passes all filters; a value may hold the wildcards `*` and `?`."""
    return all(
        any(
            _wildcard(value).fullmatch(have)
            for value in wanted.get("Values") or []
            for have in _filter_values(fleet, tags, wanted["Name"])
        )
        for wanted in filters
    )


def _filter_values(fleet: Fleet, tags: Mapping[str, str], name: str) -> Sequence[str]:
    if name.startswith("tag:"):
        key = name.removeprefix("tag:")
        return [tags[key]] if key in tags else []
    values: Mapping[str, Sequence[str]] = {
        "tag-key": list(tags),
        "tag-value": list(tags.values()),
        "activity-status": [fleet.activity_status or ""],
        "excess-capacity-termination-policy": [fleet.excess_policy],
        "fleet-state": [str(fleet.state)],
        "replace-unhealthy-instances": [str(fleet.request.replace_unhealthy).lower()],
        "type": [fleet.request.fleet_type],
    }
    if name not in values:
        raise Ec2Fault("InvalidParameterValue", f"The filter '{name}' is invalid")
    return values[name]


def _wildcard(value: str) -> re.Pattern[str]:
    escaped = re.escape(str(value)).replace(r"\*", ".*").replace(r"\?", ".")
    return re.compile(escaped, re.DOTALL)


def _described(fleet: Fleet, tags: Mapping[str, str]) -> Answer:
    """Return one fleet as DescribeFleets answers it, with EC2's own defaults."""
    request = fleet.request
    answer: dict[str, Any] = {
        "ActivityStatus": fleet.activity_status,
        "CreateTime": fleet.created_at,
        "FleetId": fleet.id,
        "FleetState": str(fleet.state),
        "ClientToken": request.client_token,
        "ExcessCapacityTerminationPolicy": fleet.excess_policy,
        "FulfilledCapacity": fleet.fulfilled(),
        "FulfilledOnDemandCapacity": fleet.fulfilled("on-demand"),
        "LaunchTemplateConfigs": fleet.launch_template_configs,
        "TargetCapacitySpecification": _without_none(
            {
                "TotalTargetCapacity": fleet.target.total,
                "OnDemandTargetCapacity": fleet.target.on_demand,
                "SpotTargetCapacity": fleet.target.spot,
                "DefaultTargetCapacityType": fleet.target.default_type,
                "TargetCapacityUnitType": fleet.target.unit_type,
            }
        ),
        "TerminateInstancesWithExpiration": request.terminate_with_expiration,
        "Type": request.fleet_type,
        "ValidFrom": request.valid_from,
        "ValidUntil": request.valid_until,
        "ReplaceUnhealthyInstances": request.replace_unhealthy,
        "SpotOptions": request.spot_options,
        "OnDemandOptions": request.on_demand_options,
        "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
        "Context": fleet.context,
    }
    if request.fleet_type == "instant":
        answer["Instances"] = [_launched(member) for member in fleet.members]
        answer["Errors"] = [_refused(*refusal) for refusal in fleet.refusals]
    return _without_none(answer)


def _filtered_members(fleet: Fleet, params: Parameters) -> list[Member]:
    """Return the members that match `instance-type`, the only filter that EC2 supports here."""
    members = list(fleet.members)
    for wanted in params.get("Filters") or []:
        if wanted["Name"] != "instance-type":
            raise Ec2Fault("InvalidParameterValue", f"The filter '{wanted['Name']}' is invalid")
        members = [m for m in members if m.pool.instance_type in wanted["Values"]]
    return members


def _active(member: Member) -> Answer:
    return _without_none(
        {
            "InstanceId": member.instance_id,
            "InstanceType": member.pool.instance_type,
            "SpotInstanceRequestId": member.spot_request_id,
            "InstanceHealth": "healthy",
        }
    )


def _launched(member: Member) -> Answer:
    return {
        "LaunchTemplateAndOverrides": _origin(member.pool),
        "Lifecycle": member.lifecycle,
        "InstanceIds": [member.instance_id],
        "InstanceType": member.pool.instance_type,
    }


def _refused(pool: Pool, lifecycle: Lifecycle, refusal: LaunchRefusal) -> Answer:
    return {
        "LaunchTemplateAndOverrides": _origin(pool),
        "Lifecycle": lifecycle,
        "ErrorCode": refusal.code,
        "ErrorMessage": refusal.message,
    }


def _origin(pool: Pool) -> Answer:
    return {
        "LaunchTemplateSpecification": _without_none(
            {
                "LaunchTemplateId": pool.template.template_id,
                "LaunchTemplateName": pool.template.template_name,
                "Version": pool.template.version,
            }
        ),
        "Overrides": _without_none(
            {
                "InstanceType": pool.instance_type,
                "SubnetId": pool.subnet_id,
                "AvailabilityZone": None if pool.subnet_id else pool.zone,
                "WeightedCapacity": pool.weight,
                "ImageId": pool.image_id,
            }
        ),
    }


def _deletion_problem(place: Ec2Region, fleet_id: str, *, terminate: bool) -> Answer | None:
    """Return EC2's reason not to delete a fleet, as in `UnsuccessfulFleetDeletions`."""
    fleet = place.fleets.get(fleet_id)
    if fleet is None:
        code, message = "fleetIdDoesNotExist", fleet_not_found(fleet_id).message
    elif fleet.request.fleet_type == "instant" and not terminate:
        code = "unexpectedError"
        message = "A fleet of type instant can only be deleted together with its instances"
    elif fleet.is_live or (terminate and fleet.state == FleetState.DELETED_RUNNING):
        return None
    else:
        code = "fleetNotInDeletableState"
        message = f"The fleet '{fleet_id}' is not in a deletable state ({fleet.state})"
    return {"Code": code, "Message": message}
