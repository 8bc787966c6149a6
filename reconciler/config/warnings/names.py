"""ARNs where AWS wants a name: Terraform plans them, and EC2 refuses them at the first launch."""

from collections.abc import Iterator
from typing import Final

from reconciler.config.faults import ARN_FOR_NAME
from reconciler.config.warnings.subject import Subject
from reconciler.model.errors import Problem

_NAMES: Final = ("instance_profile_name", "ssh_key_name")


def arns(subject: Subject) -> Iterator[Problem]:
    """Module variables that are names and hold an ARN."""
    for fleet in subject.fleets:
        for key in _NAMES:
            text = fleet.text(key)
            if text.startswith("arn:"):
                name = text.rsplit("/", 1)[-1]
                message = f"{key} is a name, not an ARN: {name} is the name in this one"
                yield subject.warning(ARN_FOR_NAME, fleet.place_of(key), message)
