"""The JSON Schema that editors complete from."""

from contextlib import suppress
from typing import Any

import jsonschema
import pytest
from pydantic import BaseModel

from reconciler.config.json_schema import descriptions, json_schema, sections
from reconciler.config.tree import NULL_TEXTS, UnquotedText, to_data
from reconciler.config.yaml_loader import compose
from tests.unit.config import test_kluster_fleet_manager as kfm
from tests.unit.config.documents import COMPLETE, found

_WORDS = {"true": True, "yes": True, "false": False, **dict.fromkeys(NULL_TEXTS)}


def as_editors_read(value: object) -> Any:
    """YAML 1.2: plain scalars that look like numbers or booleans are, `8:00` is a text."""
    if isinstance(value, dict):
        return {key: as_editors_read(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_editors_read(item) for item in value]
    if isinstance(value, UnquotedText) and value in _WORDS:
        return _WORDS[value]
    if isinstance(value, UnquotedText):
        with suppress(ValueError):
            return int(value)
        with suppress(ValueError):
            return float(value)
    return str(value)


NULLS = """\
cluster:
cluster_name: ~
regions: null
scale_in:
listen: Null
expander:
inactive_grace_periods: [{starts: , value: 15m}]
terraform: {tags: , node_taints: }
sectors:
  a: {kind: cpu, labels: , fleets: [{size: small, capacity_min: , max_capacity: null, spot: }]}
"""


@pytest.mark.parametrize("text", [COMPLETE, kfm.DOCUMENTED, kfm.COMPLETE, NULLS])
def test_valid_config_satisfies_the_schema(text: str) -> None:
    """An editor that marks a good config red gets switched off."""
    assert found(text) == []
    schema = json_schema()
    root, _ = compose(text)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(as_editors_read(to_data(root)), schema)


@pytest.mark.parametrize(
    "data",
    [
        {"bogus": 1},
        {"expander": "cheap"},
        {"sectors": {"a": {"fleets": []}}},
        {"sectors": {"a": {"kind": "cpu", "fleets": [{"min_capacity": 1}]}}},
        {"scale_in": {"utilization_threshold": 2}},
        {"reserved_memory": "2.5Gib"},
    ],
)
def test_invalid_config_is_marked(data: dict[str, Any]) -> None:
    """A schema that allows everything helps nobody."""
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, json_schema())


@pytest.mark.parametrize("model", sections())
def test_key_may_be_without_a_value_where_it_may_be_missing(model: type[BaseModel]) -> None:
    """The file is read so: a key without a value is as good as no key."""
    schema = json_schema()
    shape = schema["$defs"].get(model.__name__, schema)
    for key, value in shape["properties"].items():
        checked = jsonschema.Draft202012Validator({"$defs": schema["$defs"], **value})
        assert checked.is_valid(None) == (key not in shape.get("required", ())), key


def test_every_key_is_described() -> None:
    """Completion without a word about the key sends people to the source."""
    for model in sections():
        keys = {field.alias or name for name, field in model.model_fields.items()}
        assert set(descriptions(model)) == keys, model.__name__
