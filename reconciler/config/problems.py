"""Converts pydantic's errors into problems with a code, a path and a place."""

from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final, get_args

from pydantic import BaseModel, ValidationError

from reconciler.config import faults
from reconciler.config.schema import SectorConfig
from reconciler.config.tree import Mapping as MappingNode
from reconciler.config.tree import Place, dotted, exists, place_of
from reconciler.model.errors import Problem

Location = tuple[int | str, ...]
_SHAPES: Final = {
    "dict_type": "must be a mapping",
    "model_type": "must be a mapping",
    "tuple_type": "must be a list",
    "list_type": "must be a list",
}
_OF_KUBERNETES: Final = frozenset({"apiVersion", "kind", "metadata", "spec", "data", "status"})
_LONGEST_KEY: Final = 128
"""Characters of an unknown key that are compared with known ones."""
_KFM_SPELLINGS: Final = {"min_capacity": "capacity_min", "cluster": "cluster_name"}
_ALSO_KNOWN: Final = {"SectorConfig": ("cluster_name",), "FleetEntry": ("capacity_min",)}


def from_validation(
    error: ValidationError,
    root: MappingNode,
    model: type[BaseModel] = SectorConfig,
    place_in_file: Callable[[Location], Place] | None = None,
) -> Iterator[Problem]:
    """Yield every fault that pydantic found; `rules.kinds` reports a sector without a kind.

    Args:
        error: What pydantic raised.
        root: The file's tree, for places.
        model: The model that was validated; its keys are suggested for unknown ones.
        place_in_file: The place of a location of the model; None: the model is of the whole file.
    """
    for details in error.errors(include_url=False, include_context=True, include_input=False):
        location = _as_written(details["loc"], root)
        kind = details["type"]
        if kind == "missing" and len(location) == 3 and location[0::2] == ("sectors", "kind"):
            continue
        code, message = _translate(kind, location, details, model)
        place = place_in_file(location) if place_in_file else place_of(root, location)
        yield Problem(
            line=place.line,
            column=place.column,
            path=dotted(location),
            code=code,
            message=message,
        )


def _translate(
    kind: str, location: Location, details: Mapping[str, Any], model: type[BaseModel]
) -> tuple[str, str]:
    """Return code and message for one of pydantic's errors."""
    if kind in faults.ALL_CODES:
        return kind, str(details["msg"])
    if kind == "extra_forbidden":
        return faults.UNKNOWN_KEY, _unknown_key(location, model)
    if kind == "missing":
        return faults.TYPE, f"{location[-1]} is missing"
    if kind == "literal_error":
        return faults.TYPE, f"must be {details['ctx']['expected']}"
    if kind in _SHAPES:
        return faults.TYPE, _SHAPES[kind]
    return faults.TYPE, str(details["msg"])


def _unknown_key(location: Location, model: type[BaseModel]) -> str:
    """Return the message for an unknown key, with the nearest known one."""
    key = str(location[-1])
    if len(location) == 1 and model is SectorConfig and key in _OF_KUBERNETES:
        return f"unknown key {faults.quoted(key)}; a sector config is not a Kubernetes object"
    known = known_keys(location[:-1], model)
    close = get_close_matches(key[:_LONGEST_KEY], known, n=1, cutoff=0.6)
    inside = next((name for name in known if key in known_keys((*location[:-1], name), model)), "")
    if inside and not close:
        return f"unknown key {faults.quoted(key)}; it belongs into {inside}"
    nearest = close or get_close_matches(key[:_LONGEST_KEY], known, n=1, cutoff=0.0)
    hint = "did you mean" if close else "nearest known key:"
    shown = f"; {hint} {nearest[0]}{'?' if close else ''}" if nearest else ""
    return f"unknown key {faults.quoted(key)}{shown}"


def known_keys(location: Location, root: type[BaseModel] = SectorConfig) -> list[str]:
    """Return the keys that the mapping at `location` of a `root` may have, sorted."""
    model = _model_at(location, root)
    if model is None:
        return []
    names = [field.alias or name for name, field in model.model_fields.items()]
    return sorted([*names, *_ALSO_KNOWN.get(model.__name__, ())])


def _model_at(location: Location, root: type[BaseModel]) -> type[BaseModel] | None:
    """Return the model that describes the mapping at `location`."""
    current: Any = root
    for step in location:
        model = _model_in(current)
        if isinstance(current, type) and issubclass(current, BaseModel) and isinstance(step, str):
            by_alias = {f.alias or n: f.annotation for n, f in current.model_fields.items()}
            current = by_alias.get(step)
        else:
            current = model
    return _model_in(current)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model inside `Model | None`, `tuple[Model, ...]`, `dict[str, Model]`, `Annotated`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for part in get_args(annotation):
        if (found := _model_in(part)) is not None:
            return found
    return None


def _as_written(location: Location, root: MappingNode) -> Location:
    """Return the location as in the file: older spellings, without pydantic's own parts."""
    steps = tuple(step for step in location if step != "[key]")
    old = _KFM_SPELLINGS.get(str(steps[-1])) if steps else None
    if old is None:
        return steps
    older = (*steps[:-1], old)
    return older if not exists(root, steps) and exists(root, older) else steps
