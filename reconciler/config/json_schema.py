"""The JSON Schema of a sector config, for editors; made from the models."""

from typing import Any

from reconciler.config.schema import SectorConfig


def json_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of the file, with descriptions and defaults."""
    schema = SectorConfig.model_json_schema(by_alias=True)
    properties = schema["properties"]
    properties["cluster_name"] = dict(
        properties["cluster"], description="Kluster Fleet Manager's name of `cluster`."
    )
    fleet = schema["$defs"]["FleetEntry"]["properties"]
    fleet["capacity_min"] = dict(
        fleet["min_capacity"], description="Kluster Fleet Manager's other name of `min_capacity`."
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Sector config of the fleet reconciler",
        **{key: value for key, value in schema.items() if key != "title"},
    }
