"""The JSON Schema of a sector config, for editors; made from the models.

Descriptions are the strings under the fields, read from the source files.
"""

import ast
import inspect
import sys
from collections.abc import Iterator
from datetime import time
from functools import cache
from types import ModuleType
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from reconciler.config.schema import SectorConfig
from reconciler.model.quantity import format_amount

_ANNOTATIONS = frozenset({"default", "description", "title"})


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of the file, with descriptions and defaults."""
    schema = SectorConfig.model_json_schema(by_alias=True)
    for model in sections():
        shape = schema if model is SectorConfig else schema["$defs"][model.__name__]
        for key, text in descriptions(model).items():
            shape["properties"][key]["description"] = text
        for name, field in model.model_fields.items():
            if isinstance(as_written(name, field), str):
                shape["properties"][field.alias or name]["default"] = as_written(name, field)
    _add_older_names(schema)
    for section in ("Terraform", "TerraformVariables"):
        taints = schema["$defs"][section]["properties"]["node_taints"]
        taints["anyOf"] = [*taints["anyOf"], {"type": "string"}]
    for shape in (schema, *schema["$defs"].values()):
        _allow_nulls(shape)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Sector config of the fleet reconciler",
        **{key: value for key, value in schema.items() if key != "title"},
    }


def _allow_nulls(shape: dict[str, Any]) -> None:
    """Allow null as a missing value, where the key may be missing."""
    for key, value in shape.get("properties", {}).items():
        if key not in shape.get("required", ()):
            shape["properties"][key] = _or_null(value)


def _or_null(value: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a value that may also be null."""
    if "anyOf" in value:
        null = {"type": "null"}
        choices = [each for each in value["anyOf"] if each != null]
        return {**value, "anyOf": [*choices, null]}
    if isinstance(value.get("type"), str) and "enum" not in value:
        return {**value, "type": [value["type"], "null"]}
    schema = {key: each for key, each in value.items() if key not in _ANNOTATIONS}
    notes = {key: each for key, each in value.items() if key in _ANNOTATIONS}
    return {**notes, "anyOf": [schema, {"type": "null"}]}


def _add_older_names(schema: dict[str, Any]) -> None:
    """Add the names that Kluster Fleet Manager uses for two of the keys."""
    properties = schema["properties"]
    text = "Kluster Fleet Manager's name of `cluster`."
    properties["cluster_name"] = dict(properties["cluster"], description=text)
    fleet = schema["$defs"]["FleetEntry"]["properties"]
    text = "Kluster Fleet Manager's other name of `min_capacity`."
    fleet["capacity_min"] = dict(fleet["min_capacity"], description=text)


def as_written(name: str, field: FieldInfo) -> Any:
    """Return a field's default as a config would state it: quantities and times as texts."""
    value = field.get_default(call_default_factory=True, validated_data={})
    if isinstance(value, time):
        return "24:00" if name == "ends" else f"{value:%H:%M}"
    if isinstance(value, int) and name.endswith("_milli"):
        return format_amount("cpu", value)
    if isinstance(value, int) and name.endswith("_bytes"):
        return format_amount("memory", value)
    return value


def sections() -> tuple[type[BaseModel], ...]:
    """Return every model of the config, the top one first, each once."""
    found: dict[type[BaseModel], None] = {}
    waiting: list[type[BaseModel]] = [SectorConfig]
    while waiting:
        model = waiting.pop(0)
        if model not in found:
            found[model] = None
            for field in model.model_fields.values():
                waiting += _models_in(field.annotation)
    return tuple(found)


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the models inside `Model | None`, `tuple[Model, ...]`, `dict[str, Model]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models_in(part)


def descriptions(model: type[BaseModel]) -> dict[str, str]:
    """Return the meaning of each key of a model: the strings under its fields and its bases'."""
    texts: dict[str, str] = {}
    for ancestor in reversed(model.__mro__):
        if issubclass(ancestor, BaseModel) and ancestor is not BaseModel:
            texts |= _documented(sys.modules[ancestor.__module__]).get(ancestor.__name__, {})
    return {
        field.alias or name: texts[name]
        for name, field in model.model_fields.items()
        if name in texts
    }


@cache
def _documented(module: ModuleType) -> dict[str, dict[str, str]]:
    """Return the strings under the fields of a module's classes, by class and field."""
    tree = ast.parse(inspect.getsource(module))
    return {node.name: _field_texts(node) for node in tree.body if isinstance(node, ast.ClassDef)}


def _field_texts(node: ast.ClassDef) -> dict[str, str]:
    """Return the string that follows each annotated field."""
    texts: dict[str, str] = {}
    for field, after in zip(node.body, node.body[1:], strict=False):
        if not (isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)):
            continue
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            texts[field.target.id] = " ".join(str(after.value.value).split())
    return texts
