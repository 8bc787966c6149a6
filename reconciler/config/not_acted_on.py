"""Keys of a sector config that are accepted before the feature behind them is there.

They are part of the public contract, so a config may state them with their default or disabled
value. Asking for the feature is a fault for `validate` and `run`: a program that accepts a key and
does nothing about it lets people wait for what never comes. Whoever builds one of the features
takes it out of here, and the sentence `SAID` out of its docstrings.
"""

from collections.abc import Iterator
from typing import Final

from pydantic_core import PydanticCustomError

from reconciler.config import scalars
from reconciler.config.faults import NOT_ACTED_ON
from reconciler.config.rules.document import Document, Location
from reconciler.config.tree import Mapping, Scalar, text_of
from reconciler.model.errors import Problem

SAID: Final = "Not built yet, refused."
"""How the docstring of such a key ends."""

_SWITCHES: Final = {
    "spot_return": "demand is not moved back to spot nodes; set enabled: false",
}
"""Sections with `enabled`: what does not happen, and what to do instead."""
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
    root = document.root
    location: Location
    for key, instead in _SWITCHES.items():
        if _is_on(root.mapping(key)):
            yield _fault(document, (key, "enabled"), f"{key} is not built yet: {instead}")
    for fleet in document.fleets():
        if fleet.entry.text("provider") == "asg":
            severity = "error" if running else "warning"
            location = (*fleet.location, "provider")
            yield _fault(document, location, f"provider: asg: {_GROUP}", severity)


def _is_on(section: Mapping) -> bool:
    """Whether a section says `enabled: true`; a value that cannot be read has its own fault."""
    node = section.get("enabled")
    if not isinstance(node, Scalar) or text_of(node) is None:
        return False
    try:
        return scalars.boolean(node.text)
    except PydanticCustomError:
        return False


def _fault(
    document: Document, location: Location, message: str, severity: str = "error"
) -> Problem:
    return document.problem(NOT_ACTED_ON, location, message, severity=severity)
