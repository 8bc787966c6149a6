"""The IAM policies that ship with the program, for one cluster."""

import json
from typing import Any, Final, Literal

from reconciler.gitops.assets import read_template

PolicyName = Literal["capacity-loop", "ci-plan", "ci-apply"]
POLICIES: Final[tuple[PolicyName, ...]] = ("capacity-loop", "ci-plan", "ci-apply")


def policy(name: PolicyName, values: dict[str, str]) -> str:
    """One policy document as JSON.

    Args:
        name: Whose: `capacity-loop` for the pods, `ci-plan` and `ci-apply` for pipelines.
        values: For its placeholders: `cluster`; `partition` (aws); for pipelines `bucket` and
            `key` of the state, `instance_profile_role`.
    """
    document = json.loads(read_template(f"iam/{name.replace('-', '_')}.json"))
    return json.dumps(_filled(document, {"partition": "aws", **values}), indent=2) + "\n"


def _filled(node: Any, values: dict[str, str]) -> Any:
    """The document with every `${name}` replaced; whatever a value holds stays one JSON text."""
    if isinstance(node, str):
        for key, value in values.items():
            node = node.replace("${" + key + "}", value)
        return node
    if isinstance(node, list):
        return [_filled(each, values) for each in node]
    if isinstance(node, dict):
        return {key: _filled(value, values) for key, value in node.items()}
    return node
