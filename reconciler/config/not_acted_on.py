"""What a sector config may ask for and this version does not do.

It is part of the public contract, so a config may state it. Asking `run` for it is a fault: a
program that accepts a key and does nothing about it lets people wait for what never comes. Whoever
builds the feature takes this away.
"""

from collections.abc import Iterator
from typing import Final

from reconciler.config.faults import NOT_ACTED_ON
from reconciler.config.rules.document import Document
from reconciler.model.errors import Problem

_GROUP: Final = (
    "`reconciler run` does not manage Auto Scaling groups; `reconciler plan` with files does. Take"
    " the fleet out of the config that `run` reads"
)


def not_acted_on(document: Document, *, running: bool) -> Iterator[Problem]:
    """What the config asks for and this version does not do, as faults at their places.

    Args:
        document: The config.
        running: Whether it is for the capacity loop. Auto Scaling groups are planned offline and
            not managed live: an error for `run`, a warning otherwise, as people who only plan
            must not be stopped.
    """
    for fleet in document.fleets():
        if fleet.entry.text("provider") == "asg":
            severity = "error" if running else "warning"
            location = (*fleet.location, "provider")
            message = f"provider: asg: {_GROUP}"
            yield document.problem(NOT_ACTED_ON, location, message, severity=severity)
