"""A whole fault script, read from a file or from a request, or refused at its place."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from reconciler.config import problems, yaml_loader
from reconciler.config.base import Section
from reconciler.config.faults import in_file_order
from reconciler.config.loader import read_config_bytes
from reconciler.config.tree import to_data
from reconciler.config.types import Integer
from reconciler.model.errors import ConfigError, InputError
from reconciler.sandbox.faults.aws import AwsFaults
from reconciler.sandbox.faults.kubernetes import KubernetesFaults

SectionT = TypeVar("SectionT", bound=Section)


class FaultScript(Section):
    """What goes wrong, where, when and how often."""

    seed: Integer = 0
    """Of every draw; the same seed and the same calls meet the same faults."""
    aws: AwsFaults = AwsFaults.model_construct()
    """At the emulated AWS."""
    kubernetes: KubernetesFaults = KubernetesFaults.model_construct()
    """At the simulated cluster's API server."""


def load_script(path: str | Path) -> FaultScript:
    """Read a fault script from a file; `-` is standard input.

    Raises:
        ConfigError: Every fault in the file, in its order; also when it cannot be read.
    """
    name = "<stdin>" if str(path) == "-" else str(path)
    try:
        root, found = yaml_loader.compose(yaml_loader.decode(read_config_bytes(path)))
    except yaml_loader.Unreadable as error:
        raise ConfigError(name, (error.problem,)) from None
    wrong = list(found)
    try:
        script = FaultScript.model_validate(to_data(root))
    except ValidationError as error:
        wrong += problems.from_validation(error, root, FaultScript)
        raise ConfigError(name, in_file_order(wrong)) from None
    if wrong:
        raise ConfigError(name, in_file_order(wrong))
    return script


def read_document(model: type[SectionT], document: Mapping[str, Any]) -> SectionT:
    """Return a part of a script from parsed JSON.

    Raises:
        InputError: The first of its faults, with its place.
    """
    try:
        return model.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "the document"
        raise InputError(place, str(first["msg"])) from error


def read_seed(document: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
    """Return the seed of a request, and the rest of it.

    Raises:
        InputError: The seed is not a whole number.
    """
    rest = dict(document)
    seed = rest.pop("seed", 0)
    if not isinstance(seed, int) or isinstance(seed, bool):
        raise InputError("seed", "is not a whole number")
    return seed, rest


def to_document(section: Section) -> dict[str, Any]:
    """Return the same part as JSON values, with a script's keys."""
    return section.model_dump(mode="json", by_alias=True, exclude_unset=True)
