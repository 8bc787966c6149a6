"""IAM's decision with conditions on tags, which moto leaves out: is this call allowed?

Knows Allow and Deny, wildcards in actions and resources, and StringEquals, StringLike, ArnLike and
their IfExists forms, Null, and ForAllValues:StringNotEquals for `aws:TagKeys`. Any other condition
counts as not fulfilled, so that an unknown condition never proves a policy. Source: IAM user guide,
"Policy evaluation logic", read 2026-08.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

Document = Mapping[str, Any]
_BETWEEN_KEYS = "\0"
"""Between the values of a condition key that has several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One resource of a call."""

    arn: str = "*"
    """`*` for calls without a resource, above all describes."""
    context: Mapping[str, str] = field(default_factory=dict)
    """Condition keys of this resource and request, such as `aws:ResourceTag/cluster`."""


def is_allowed(policies: Sequence[Document], action: str, subjects: Sequence[Subject]) -> bool:
    """Return whether the policies allow the action on every subject.

    Args:
        policies: The documents of the caller.
        action: `service:Action`.
        subjects: What it is about; at least one.
    """
    statements = [statement for policy in policies for statement in _statements(policy)]
    return all(_decided(statements, action, subject) for subject in subjects)


def _decided(statements: Sequence[Document], action: str, subject: Subject) -> bool:
    matching = [statement for statement in statements if _matches(statement, action, subject)]
    if any(each.get("Effect") != "Allow" for each in matching):
        return False
    return bool(matching)


def _statements(policy: Document) -> Iterator[Document]:
    found = policy.get("Statement", [])
    yield from [found] if isinstance(found, Mapping) else found


def _matches(statement: Document, action: str, subject: Subject) -> bool:
    actions = [text.lower() for text in _texts(statement.get("Action"))]
    if not any(fnmatchcase(action.lower(), each) for each in actions):
        return False
    if not any(fnmatchcase(subject.arn, text) for text in _texts(statement.get("Resource"))):
        return False
    conditions = statement.get("Condition") or {}
    return all(
        _fulfilled(operator, subject.context.get(key), _texts(wanted))
        for operator, keys in conditions.items()
        for key, wanted in keys.items()
    )


def _fulfilled(operator: str, value: str | None, wanted: Sequence[str]) -> bool:
    bare = operator.removesuffix("IfExists")
    if operator == "Null":
        return (value is None) == (wanted == ["true"])
    if operator == "ForAllValues:StringNotEquals":
        # A request without the key fulfils it too: a policy has to require the key with Null.
        return not set((value or "").split(_BETWEEN_KEYS)) & set(wanted)
    if value is None:
        return bare != operator
    if bare == "StringEquals":
        return value in wanted
    if bare in {"StringLike", "ArnLike"}:
        return any(fnmatchcase(value, each) for each in wanted)
    return False


def _texts(value: Any) -> list[str]:
    if value is None:
        return []
    return [value] if isinstance(value, str) else [str(each) for each in value]


ID_PARAMETERS: Mapping[str, tuple[str, str]] = {
    "ModifyFleet": ("FleetId", "fleet"),
    "DeleteFleets": ("FleetIds", "fleet"),
    "TerminateInstances": ("InstanceIds", "instance"),
    "CreateLaunchTemplateVersion": ("LaunchTemplateId", "launch-template"),
    "ModifyLaunchTemplate": ("LaunchTemplateId", "launch-template"),
    "DeleteLaunchTemplate": ("LaunchTemplateId", "launch-template"),
    "CreateTags": ("Resources", ""),
    "DeleteTags": ("Resources", ""),
}
"""Calls about existing resources: the parameter with their ids, and EC2's name of their type; if
empty, the ids show it."""
KINDS: Mapping[str, str] = {"i": "instance", "lt": "launch-template", "vol": "volume"}
"""By what ids begin with, where that is not the kind itself."""
CREATED: Mapping[str, str] = {
    "CreateFleet": "fleet",
    "CreateLaunchTemplate": "launch-template",
}
"""Calls that make a resource, whose tags come with the request."""
_TAGGING_GROUPS = {"CreateOrUpdateTags", "DeleteTags"}
"""Calls of Auto Scaling that name their groups in the tags."""


def subjects_of(
    action: str,
    parameters: Mapping[str, Any],
    tags: Mapping[str, Mapping[str, str]],
    place: str,
) -> list[Subject]:
    """Return the resources of an EC2 call.

    Args:
        action: Without its service.
        parameters: By botocore's names.
        tags: Of every resource of the region by id; one that is gone has none.
        place: `REGION:ACCOUNT`.
    """
    region = {"aws:RequestedRegion": place.partition(":")[0]}
    subjects = _subjects(action, parameters, tags, place)
    return [replace(subject, context={**region, **subject.context}) for subject in subjects]


def scaling_subjects_of(
    action: str,
    parameters: Mapping[str, Any],
    tags: Mapping[str, Mapping[str, str]],
    members: Mapping[str, str],
    place: str,
) -> list[Subject]:
    """Return the resource of an Auto Scaling call: a group, also where only an instance is named.

    Source: Service Authorization Reference, "Actions, resources, and condition keys for Amazon EC2
    Auto Scaling", read 2026-11: describes know no resource.

    Args:
        action: Without its service.
        parameters: By botocore's names.
        tags: Of every group of the region by name.
        members: The group of each instance.
        place: `REGION:ACCOUNT`.
    """
    region = {"aws:RequestedRegion": place.partition(":")[0]}
    if action.startswith("Describe"):
        return [Subject(context=region)]
    if action in _TAGGING_GROUPS:
        named = {str(tag.get("ResourceId")) for tag in parameters.get("Tags") or []}
    else:
        member = members.get(parameters.get("InstanceId", ""))
        named = {str(parameters.get("AutoScalingGroupName") or member)}
    of_request = _tags_of(parameters, values=action != "DeleteTags")
    return [
        Subject(
            arn=f"arn:aws:autoscaling:{place}:autoScalingGroup:*:autoScalingGroupName/{name}",
            context={**region, **_resource_tags(tags.get(name, {}), "autoscaling"), **of_request},
        )
        for name in sorted(named)
    ]


def _subjects(
    action: str,
    parameters: Mapping[str, Any],
    tags: Mapping[str, Mapping[str, str]],
    place: str,
) -> list[Subject]:
    if action in CREATED:
        requested = _request_tags(parameters, CREATED[action])
        return [Subject(arn=f"arn:aws:ec2:{place}:{CREATED[action]}/*", context=requested)]
    if action == "RunInstances":
        return _launched(parameters, tags, place)
    name, kind = ID_PARAMETERS.get(action, ("", ""))
    if not name or name not in parameters:
        return [Subject()]
    return [
        Subject(
            arn=f"arn:aws:ec2:{place}:{kind or _resource_type(text)}/{text}",
            context={**_resource_tags(tags.get(text, {})), **_new_tags(action, parameters)},
        )
        for text in _texts(parameters[name])
    ]


def _launched(
    parameters: Mapping[str, Any], tags: Mapping[str, Mapping[str, str]], place: str
) -> list[Subject]:
    """Return the instance and, if there is one, its launch template, which the instance then has.

    Source: EC2 user guide, "Control access to launching instances with templates", read 2026-11.
    """
    template = str((parameters.get("LaunchTemplate") or {}).get("LaunchTemplateId") or "")
    arn = f"arn:aws:ec2:{place}:launch-template/{template}"
    context = _request_tags(parameters, "instance")
    if not template:
        return [Subject(arn=f"arn:aws:ec2:{place}:instance/*", context=context)]
    return [
        Subject(
            arn=f"arn:aws:ec2:{place}:instance/*", context={**context, "ec2:LaunchTemplate": arn}
        ),
        Subject(arn=arn, context=_resource_tags(tags.get(template, {}))),
    ]


def _resource_type(resource_id: str) -> str:
    prefix = resource_id.partition("-")[0]
    return KINDS.get(prefix, prefix)


def _resource_tags(tags: Mapping[str, str], service: str = "ec2") -> dict[str, str]:
    return {
        f"{prefix}:ResourceTag/{key}": value
        for key, value in tags.items()
        for prefix in ("aws", service)
    }


def _new_tags(action: str, parameters: Mapping[str, Any]) -> dict[str, str]:
    """Return the condition keys for tags that a request of EC2 sets on existing resources."""
    if action not in {"CreateTags", "DeleteTags"}:
        return {}
    return _tags_of(parameters, values=action == "CreateTags")


def _tags_of(parameters: Mapping[str, Any], *, values: bool) -> dict[str, str]:
    """Return the condition keys for a request's tags: their names and, with `values`, values."""
    tags = parameters.get("Tags") or []
    if not tags:
        return {}
    keys = {"aws:TagKeys": _BETWEEN_KEYS.join(str(tag.get("Key")) for tag in tags)}
    found = {f"aws:RequestTag/{tag.get('Key')}": str(tag.get("Value", "")) for tag in tags}
    return {**keys, **(found if values else {})}


def _request_tags(parameters: Mapping[str, Any], kind: str) -> dict[str, str]:
    return {
        f"aws:RequestTag/{tag.get('Key')}": str(tag.get("Value", ""))
        for tag_specification in parameters.get("TagSpecifications") or []
        if tag_specification.get("ResourceType") == kind
        for tag in tag_specification.get("Tags") or []
    }
