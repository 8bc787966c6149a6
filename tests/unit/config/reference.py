"""Writes the reference part of docs/config.md from the models.

`python -m tests.unit.config.reference` rewrites the file; a test fails while it differs.
"""

from collections.abc import Iterator
from decimal import Decimal
from functools import partial
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, SecretStr

from reconciler.config.json_schema import as_written, descriptions, sections
from reconciler.config.schema import SectorConfig
from reconciler.config.terraform import Terraform

PAGE = Path(__file__).parents[3] / "docs" / "config.md"
BEGIN = "<!-- reference: generated -->\n"
END = "<!-- end of reference -->\n"
WORDS = {
    "text": "text",
    "any_text": "text",
    "boolean": "true or false",
    "integer": "whole number",
    "real": "number",
    "duration_seconds": "duration",
    "time_of_day": "time of day",
    "weekday": "day",
    "quantity": "quantity",
    "price": "US dollars",
    "secret_url": "URL (secret)",
    "_taints_from_text": "list of Taint, or text",
}
"""What the reader of a value is called, in words for people."""


def reference() -> str:
    """Every section with its keys, as Markdown."""
    return "\n".join(section_table(model) for model in sections() if model is not Terraform)


def section_table(model: type[BaseModel]) -> str:
    """One section as a table."""
    title = "Top level" if model is SectorConfig else model.__name__
    summary = " ".join((model.__doc__ or "").split())
    lines = [
        f"### {title}",
        "",
        summary,
        "",
        "| key | value | default | meaning |",
        "|---|---|---|---|",
    ]
    texts = descriptions(model)
    for name, field in model.model_fields.items():
        key = field.alias or name
        word = _word(
            Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
        )
        default = "required" if field.is_required() else _default(as_written(name, field), word)
        lines.append(f"| `{key}` | {word} | {default} | {texts[key]} |")
    return "\n".join([*lines, ""])


def _default(value: Any, word: str) -> str:
    """A default as it would be written."""
    if value is None or value in ((), {}) or isinstance(value, BaseModel | SecretStr):
        return ""
    if word == WORDS["duration_seconds"] and isinstance(value, float):
        return f"`{_duration(int(value))}`"
    if isinstance(value, tuple):
        return f"`{', '.join(map(str, value))}`"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, float | Decimal):
        return f"`{value:g}`"
    return f"`{value}`" if value != "" else ""


def _duration(seconds: int) -> str:
    """Whole seconds in the largest unit that says them as one number: 900 is `15m`."""
    units = (("d", 86_400), ("h", 3_600), ("m", 60))
    unit, length = next((each for each in units if seconds and seconds % each[1] == 0), ("s", 1))
    return f"{seconds // length}{unit}"


def _word(annotation: Any) -> str:
    """What kind of value a field takes."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return f"[{annotation.__name__}](#{annotation.__name__.lower()})".replace(
            "[Terraform](#terraform)",
            "[TerraformVariables](#terraformvariables), `backend`, `by_region`",
        )
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _annotated(arguments)
    if origin in {Union, UnionType}:
        return next(_word(part) for part in arguments if part is not NoneType)
    if origin is tuple:
        return f"list of {_word(arguments[0])}"
    if origin is dict:
        return f"mapping of {_word(arguments[1])}"
    return "text"


def _annotated(arguments: tuple[Any, ...]) -> str:
    """The word of the function that reads the value."""
    inner = arguments[0]
    if get_origin(inner) is Literal:
        return " or ".join(f"`{choice}`" if choice else "empty" for choice in get_args(inner))
    for reader in _readers(arguments[1:]):
        if reader in WORDS:
            return WORDS[reader]
    return _word(inner)


def _readers(metadata: tuple[Any, ...]) -> Iterator[str]:
    """The names of the functions that read a value."""
    for part in metadata:
        if isinstance(part, BeforeValidator):
            function: Any = part.func
            yield function.func.__name__ if isinstance(function, partial) else function.__name__


def page_with_reference(page: str) -> str:
    """The page with its generated part as it should be."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{reference()}\n{END}{after}"


def main() -> None:
    """Rewrite the page."""
    PAGE.write_text(page_with_reference(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
