"""Converts pydantic's errors into problems with a code, a path and a place."""

from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from typing import Any, Final, get_args, get_origin

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
_SHOWN_MAX: Final = 8
"""Most keys of a mapping that a message lists."""
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
    return f"unknown key {faults.quoted(key)}{_hint(key[:_LONGEST_KEY], location[:-1], model)}"


def _hint(key: str, location: Location, model: type[BaseModel]) -> str:
    """Return what was probably meant: a misspelt key, one of another place, or one begun alike.

    If no key is like it, the known ones, where they are few.
    """
    known = known_keys(location, model)
    misspelt = get_close_matches(key, known, n=1, cutoff=0.85)
    if misspelt:
        return f"; did you mean {misspelt[0]}?"
    home = _home_of(key, location, model)
    if home:
        return f"; it belongs {home}"
    begun = [name for name in known if name.startswith(f"{key}_")]
    close = begun or get_close_matches(key, known, n=1, cutoff=0.6)
    if close:
        return f"; did you mean {close[0]}?"
    return f"; known here: {', '.join(known)}" if 0 < len(known) <= _SHOWN_MAX else ""


def _home_of(key: str, location: Location, model: type[BaseModel]) -> str:
    """Return where else a key is known, such as `into scale_in`: nearest first.

    Empty if it is known nowhere, or only far from here and in several kinds of mappings.
    """
    for name in known_keys(location, model):
        if key in known_keys((*location, name), model):
            return f"into {name}"
    for depth in reversed(range(len(location))):
        if key in known_keys(location[:depth], model):
            return f"into {dotted(location[:depth])}" if depth else "to the top level"
    elsewhere = [path for path, keys in _mappings_of(model) if key in keys]
    return f"into {elsewhere[0]}" if len(elsewhere) == 1 else ""


@cache
def _mappings_of(root: type[BaseModel]) -> tuple[tuple[str, frozenset[str]], ...]:
    """Return every kind of mapping of a file as (its uppermost path, its keys).

    Names of a user's choice are `<name>` in a path, items of a list `[]`.
    """
    paths: dict[type[BaseModel], str] = {}
    level: list[tuple[str, type[BaseModel]]] = [("", root)]
    while level:
        new = {model: path for path, model in reversed(level) if model not in paths}
        paths |= new
        level = [
            found
            for model, path in new.items()
            for name, field in model.model_fields.items()
            for found in _models_in(field.annotation, f"{path}.{field.alias or name}")
        ]
    return tuple((path.removeprefix("."), frozenset(_keys_of(m))) for m, path in paths.items())


def _models_in(annotation: Any, path: str) -> Iterator[tuple[str, type[BaseModel]]]:
    """Yield the models inside an annotation, each with its path."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield path, annotation
        return
    step = {dict: ".<name>", tuple: "[]", list: "[]"}.get(get_origin(annotation), "")
    for part in get_args(annotation):
        yield from _models_in(part, path + step)


def known_keys(location: Location, root: type[BaseModel] = SectorConfig) -> list[str]:
    """Return the keys that the mapping at `location` of a `root` may have, sorted."""
    model = _model_at(location, root)
    if model is None:
        return []
    return sorted(_keys_of(model))


def _keys_of(model: type[BaseModel]) -> list[str]:
    names = [field.alias or name for name, field in model.model_fields.items()]
    return [*names, *_ALSO_KNOWN.get(model.__name__, ())]


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
