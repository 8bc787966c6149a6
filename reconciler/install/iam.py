"""The IAM policies that ship with the program, filled in for one cluster."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

from reconciler.config.resolve import home_region_of, resolve_fleets
from reconciler.config.schema import SectorConfig
from reconciler.config.terraform import IMAGE_PARAMETER
from reconciler.gitops.rendering.assets import read_policy
from reconciler.gitops.rendering.root_module import root_modules_of
from reconciler.install.settings import BUCKET_SCHEME, ROLE
from reconciler.model.errors import UsageError
from reconciler.model.ids import REGION_FORM

PolicyName = Literal["capacity-loop", "ci-plan", "ci-apply"]
RECORDING_BUCKET: Final = "recording_bucket"
GROUPS: Final = "groups"
"""The value that includes the rights for Auto Scaling groups."""
_PLACEHOLDER: Final = re.compile(r"\$\{(\w+)\}")
_QUEUE: Final = re.compile(
    rf"https://sqs(?:-fips)?\.({REGION_FORM})\.[a-z0-9.-]+/(\d{{12}})/([\w.-]{{1,80}})"
)
"""The URL of an SQS queue: region, account, name. Each partition has a domain of its own."""
QUEUE_ACTIONS: Final = ("sqs:ChangeMessageVisibility", "sqs:DeleteMessage", "sqs:ReceiveMessage")
"""What reading the interruption queue needs; terraform/reconciler grants the same."""
STATE_KEY: Final = "state_key"
"""The value with the KMS key that encrypts the state: an ARN, which may end in an alias."""
IMAGE_PARAMETERS: Final = "image_parameters"
"""The value with the ARNs of parameters that name images of Auto Scaling groups."""
_PARTITIONS: Final = {
    "cn-": "aws-cn",
    "us-gov-": "aws-us-gov",
    "us-iso-": "aws-iso",
    "us-isob-": "aws-iso-b",
    "eu-isoe-": "aws-iso-e",
    "us-isof-": "aws-iso-f",
    "eusc-": "aws-eusc",
}
"""By the prefix of a Region's name; all others are in `aws` (a test compares them with
botocore's)."""


Values = Mapping[str, str | Sequence[str]]


def policy(name: PolicyName, values: Values) -> str:
    """One policy document as JSON.

    Args:
        name: The policy: `capacity-loop` for the pods, `ci-plan` and `ci-apply` for pipelines.
        values: For its placeholders: `cluster`; `partition` (aws); for pipelines those of
            `state_values`; for `ci-apply` `node_role_arn`; for the loop `regions`, those of
            the fleets, and `queue_arn`, if the config names an interruption queue; `groups`, if
            there are Auto Scaling groups to scale or, for pipelines, to make; `state_key`, if the
            state is encrypted with a KMS key; `image_parameters`, if such parameters name images.
    """
    file = name.replace("-", "_")
    document = json.loads(read_policy(file))
    if GROUPS in values:
        document["Statement"] += json.loads(read_policy(f"{file}_groups"))["Statement"]
    if name == "capacity-loop" and RECORDING_BUCKET in values:
        document["Statement"] += json.loads(read_policy("capacity_loop_recording"))["Statement"]
    if name == "capacity-loop" and "queue_arn" in values:
        notices = {"Sid": "ReadNotices", "Effect": "Allow", "Action": list(QUEUE_ACTIONS)}
        document["Statement"].append({**notices, "Resource": values["queue_arn"]})
    if STATE_KEY in values:
        document["Statement"].append(_state_key_statement(name, str(values[STATE_KEY])))
    if IMAGE_PARAMETERS in values and name == "ci-apply":
        # Whoever makes or changes a group has to be able to read what its template names.
        named = {"Sid": "ReadImageParameters", "Effect": "Allow", "Action": "ssm:GetParameters"}
        document["Statement"].append({**named, "Resource": values[IMAGE_PARAMETERS]})
    return json.dumps(_filled(document, {"partition": "aws", **values}), indent=2) + "\n"


def state_values(bucket: str, keys: Iterable[str], partition: str = "aws") -> Values:
    """Return the bucket with the ARNs of Terraform's states in it, and those of their locks."""
    states = [f"arn:{partition}:s3:::{bucket}/{key}" for key in keys]
    return {"bucket": bucket, "states": states, "locks": [f"{state}.tflock" for state in states]}


def _state_key_statement(name: PolicyName, key: str) -> dict[str, Any]:
    """Return the rights for an encrypted state; terraform/reconciler grants the same.

    A policy cannot name a key by an alias, so an alias is a condition on all keys of the account.
    """
    ours, _, alias = key.partition(":alias/")
    applies = name == "ci-apply"
    statement = {
        "Sid": "ReadAndWriteTheEncryptedState" if applies else "ReadTheEncryptedState",
        "Effect": "Allow",
        "Action": ["kms:Decrypt", "kms:GenerateDataKey"] if applies else ["kms:Decrypt"],
        "Resource": f"{ours}:key/*" if alias else key,
    }
    if not alias:
        return statement
    named = {"ForAnyValue:StringEquals": {"kms:ResourceAliases": f"alias/{alias}"}}
    return {**statement, "Condition": named}


def _key_arn(key: str, region: str, partition: str) -> str:
    """Return the ARN of a KMS key or alias that is given like that, by its id, or as alias/NAME."""
    if key.startswith("arn:"):
        return key
    what = key if key.startswith("alias/") else f"key/{key}"
    return f"arn:{partition}:kms:{region}:*:{what}"


def policy_values(
    name: PolicyName, config: SectorConfig, cluster: str, node_role_arn: str | None
) -> Values:
    """Return the values of a policy's placeholders for a sector config.

    Raises:
        UsageError: The config or the caller does not say what the policy needs.
    """
    home = home_region_of(config) or ""
    partition = next((p for start, p in _PARTITIONS.items() if home.startswith(start)), "aws")
    values: Values = {"cluster": cluster, "partition": partition}
    if name == "capacity-loop":
        queue = _queue_values(config.interruption.queue_url, partition)
        groups = {GROUPS: "true"} if _has_groups(config) else {}
        recording = _recording_values(config.recording.path)
        return {**values, **queue, **groups, **recording, "regions": _regions_or_fault(config)}
    values = {**values, **_terraform_values(name, config, cluster, partition)}
    if name == "ci-plan":
        return values
    if node_role_arn is None or not ROLE.fullmatch(node_role_arn):
        raise UsageError(
            "--node-role", "is needed: ci-apply may pass only this role to nodes", "name its ARN"
        )
    return {**values, "node_role_arn": node_role_arn}


def _terraform_values(
    name: PolicyName, config: SectorConfig, cluster: str, partition: str
) -> Values:
    """Return what both policies of CI need: the state of the root modules, and what they make.

    Raises:
        UsageError: No backend is configured.
    """
    backend = config.terraform.backend
    if backend is None:
        raise UsageError(
            "terraform.backend",
            f"{name} needs the Terraform state, and no backend is configured",
            "add one",
        )
    # A Region without fleets keeps its root module until they are removed: every one counts.
    elsewhere = _regions(config) - {home_region_of(config) or ""}
    roots = root_modules_of(config, cluster_name=cluster, also=elsewhere)
    keys = [root.backend.key for root in roots.values() if root.backend is not None]
    values: Values = {**state_values(backend.bucket, keys, partition)}
    if backend.kms_key_id:
        values = {**values, STATE_KEY: _key_arn(backend.kms_key_id, backend.region, partition)}
    groups_made = any(fleet.is_group and fleet.is_rendered for fleet in resolve_fleets(config))
    if groups_made or _may_lose_groups(config):
        values = {**values, GROUPS: "true"}
    if parameters := _image_parameters(config, partition):
        values = {**values, IMAGE_PARAMETERS: parameters}
    return values


def _image_parameters(config: SectorConfig, partition: str) -> list[str]:
    """Return the ARNs of the parameters that name images of groups, sorted, without versions."""
    found: set[str] = set()
    for fleet in resolve_fleets(config):
        regions = fleet.rendered_regions if fleet.is_group and fleet.is_rendered else ()
        for region in regions:
            ami = str(fleet.in_region(region).terraform.get("ami") or "")
            if ami.startswith(IMAGE_PARAMETER):
                found.add(_parameter_arn(ami.removeprefix(IMAGE_PARAMETER), partition))
    return sorted(found)


def _parameter_arn(parameter: str, partition: str) -> str:
    """Return the ARN of a parameter given by name or ARN; a version or label after it is left out.

    A name may begin with a slash; the slash before it in the ARN is then the name's.
    """
    start, arn, name = parameter.partition(":parameter/")
    if not arn:
        start, name = f"arn:{partition}:ssm:*:*", parameter.removeprefix("/")
    return f"{start}:parameter/{name.partition(':')[0]}"


def _has_groups(config: SectorConfig) -> bool:
    """Return whether the config names Auto Scaling groups, or has them found by their tags.

    It also has those that it no longer names, until they are drained and removed.
    """
    sectors = config.sectors.values()
    named = any(f.provider == "asg" for s in sectors for f in s.fleets)
    return not config.sectors or named or _may_lose_groups(config)


def _may_lose_groups(config: SectorConfig) -> bool:
    """Return whether a fleet may go that the config does not name: nothing says what it is."""
    return bool(set(config.allow_destroy) - {fleet.name for fleet in resolve_fleets(config)})


def _regions(config: SectorConfig) -> set[str]:
    """Return the Regions that fleets may be in."""
    sectors = config.sectors.values()
    fleets = [fleet.regions for sector in sectors for fleet in sector.fleets]
    found = {*config.regions, *(r for s in sectors for r in s.regions or ())}
    return found | {region for regions in fleets for region in regions or ()}


def _regions_or_fault(config: SectorConfig) -> list[str]:
    """Return the Regions that fleets may be in, sorted; cluster names are unique per Region only.

    Raises:
        UsageError: None is named.
    """
    found = _regions(config)
    if not found:
        raise UsageError(
            "regions",
            "the policy is limited to the fleets' Regions, and the config names none",
            "set regions",
        )
    return sorted(found)


def _recording_values(path: str) -> dict[str, str]:
    """Return the bucket in which demand is recorded and its key prefix; empty without one."""
    if not path.startswith(BUCKET_SCHEME):
        return {}
    bucket, _, prefix = path.removeprefix(BUCKET_SCHEME).partition("/")
    prefix = prefix.strip("/")
    return {RECORDING_BUCKET: bucket, "recording_prefix": f"{prefix}/" if prefix else ""}


def _queue_values(url: str, partition: str) -> dict[str, str]:
    """Return the queue's ARN; empty without a queue.

    Raises:
        UsageError: The URL is not one of SQS, so that no policy can name the queue.
    """
    if not url:
        return {}
    found = _QUEUE.fullmatch(url)
    if found is None:
        raise UsageError(
            "interruption.queue_url",
            "is not the URL of an SQS queue, so the policy cannot name the queue",
            "it looks like https://sqs.us-west-2.amazonaws.com/123456789012/NAME",
        )
    return {"queue_arn": f"arn:{partition}:sqs:{found[1]}:{found[2]}:{found[3]}"}


def _filled(node: Any, values: Values) -> Any:
    """Return the document with every `${name}` replaced; each value stays one JSON string.

    A list with one placeholder becomes the list of its values.
    """
    if isinstance(node, str):
        return _PLACEHOLDER.sub(lambda found: str(values[found[1]]), node)
    if isinstance(node, list):
        several = _several(node, values)
        return several if several is not None else [_filled(each, values) for each in node]
    if isinstance(node, dict):
        return {_filled(key, values): _filled(value, values) for key, value in node.items()}
    return node


def _several(node: list[Any], values: Values) -> list[str] | None:
    """Return the values of the list's only name, if that name has several."""
    found = _PLACEHOLDER.fullmatch(node[0]) if len(node) == 1 else None
    value = values[found[1]] if found else ""
    return None if isinstance(value, str) else list(value)
