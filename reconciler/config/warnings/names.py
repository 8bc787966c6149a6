"""Warnings about ARNs given where a name is needed, and about names that no expander reads."""

from collections.abc import Iterator
from typing import Final

from reconciler.config.faults import ARN_FOR_NAME, UNUSED_PRIORITIES
from reconciler.config.warnings.subject import Subject
from reconciler.model.errors import Problem

_NAMES: Final = ("instance_profile_name", "ssh_key_name")


def arns(subject: Subject) -> Iterator[Problem]:
    """Yield a warning for each name that holds an ARN, which EC2 refuses at the first launch."""
    for fleet in subject.fleets:
        for key in _NAMES:
            text = fleet.text(key)
            if text.startswith("arn:"):
                name = text.rsplit("/", 1)[-1]
                message = f"{key} is a name, not an ARN: {name} is the name in this one"
                yield subject.warning(ARN_FOR_NAME, fleet.place_of(key), message)


def unused_priorities(subject: Subject) -> Iterator[Problem]:
    """Yield a warning for name expressions that only another expander than the config's reads."""
    config = subject.config
    expanders = {config.expander, *(sector.expander for sector in config.sectors.values())}
    if config.expander_priorities and "priority" not in expanders:
        message = (
            f"expander_priorities has no effect with expander: {config.expander}; it is for"
            " expander: priority"
        )
        yield subject.warning(UNUSED_PRIORITIES, ("expander_priorities",), message)
