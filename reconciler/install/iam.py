"""The IAM policies that ship with the program, for one cluster."""

import json
import re
from typing import Any, Final, Literal

from reconciler.config.schema import SectorConfig
from reconciler.gitops.assets import read_policy
from reconciler.install.settings import ROLE
from reconciler.model.errors import UsageError

PolicyName = Literal["capacity-loop", "ci-plan", "ci-apply"]
_PLACEHOLDER: Final = re.compile(r"\$\{(\w+)\}")
_PARTITIONS: Final = {"cn-": "aws-cn", "us-gov-": "aws-us-gov"}
"""By how a Region's name begins; all others are in `aws`."""


def policy(name: PolicyName, values: dict[str, str]) -> str:
    """One policy document as JSON.

    Args:
        name: Whose: `capacity-loop` for the pods, `ci-plan` and `ci-apply` for pipelines.
        values: For its placeholders: `cluster`; `partition` (aws); for pipelines `bucket` and
            `key` of the state; for `ci-apply` `node_role_arn`.
    """
    document = json.loads(read_policy(name.replace("-", "_")))
    return json.dumps(_filled(document, {"partition": "aws", **values}), indent=2) + "\n"


def policy_values(
    name: PolicyName, config: SectorConfig, cluster: str, node_role_arn: str | None
) -> dict[str, str]:
    """What a policy's placeholders stand for in a sector config.

    Raises:
        UsageError: The config or the caller does not say what the policy needs.
    """
    home = config.regions[0] if config.regions else ""
    partition = next((p for start, p in _PARTITIONS.items() if home.startswith(start)), "aws")
    values = {"cluster": cluster, "partition": partition}
    if name == "capacity-loop":
        return values
    backend = config.terraform.backend
    if backend is None:
        raise UsageError(
            "terraform.backend", f"{name} is limited to the state, and none is named", "name it"
        )
    values |= {"bucket": backend.bucket, "key": backend.key}
    if name == "ci-plan":
        return values
    if node_role_arn is None or not ROLE.fullmatch(node_role_arn):
        raise UsageError("--node-role", "ci-apply gives nodes this role", "name its ARN")
    return {**values, "node_role_arn": node_role_arn}


def _filled(node: Any, values: dict[str, str]) -> Any:
    """The document with every `${name}` replaced; whatever a value holds stays one JSON text."""
    if isinstance(node, str):
        return _PLACEHOLDER.sub(lambda found: values[found[1]], node)
    if isinstance(node, list):
        return [_filled(each, values) for each in node]
    if isinstance(node, dict):
        return {key: _filled(value, values) for key, value in node.items()}
    return node
