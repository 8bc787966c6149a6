"""What all parts of a sector config have in common."""

from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator

from reconciler.config.tree import UnquotedText


class Section(BaseModel):
    """A mapping of a sector config: unknown keys are faults, values are final and frozen.

    Fields are described by the string under them; `json_schema` reads those from the source, so
    that a start of the program does not pay for it. Defaults that are sections themselves are
    made with `model_construct()`, which needs no validator to be built at import.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, data: Any) -> Any:
        """Drop keys without a value (`key:` or `key: null`), which count as missing."""
        if not isinstance(data, dict):
            return data
        return {k: v for k, v in data.items() if not (isinstance(v, UnquotedText) and v.is_null)}

    def given(self) -> dict[str, Any]:
        """Return the values that the config states, without the defaults."""
        return {name: getattr(self, name) for name in sorted(self.model_fields_set)}
