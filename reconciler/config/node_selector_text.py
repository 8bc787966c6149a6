"""Node selectors written as text: `key=value,other!=value,key,!key`."""

from reconciler.config.faults import wrong_type
from reconciler.model.selectors import LabelSelector, Requirement


def parse_node_selector(text: str) -> LabelSelector | None:
    """Return the selector; None for an empty text.

    Raises:
        PydanticCustomError: It has another form; sets (`key in (a, b)`) are not supported.
    """
    if not text.strip():
        return None
    return LabelSelector(match_expressions=tuple(map(_requirement, text.split(","))))


def checked_node_selector(text: str) -> str:
    """Return the text, if it is valid."""
    parse_node_selector(text)
    return text


def _requirement(part: str) -> Requirement:
    key, operator, value = part.strip().replace("==", "=").partition("=")
    if "(" in part or ")" in part or not key.strip("! "):
        raise wrong_type(f"{part.strip()!r} is not `key=value`, `key!=value`, `key` or `!key`")
    if not operator:
        named = key.strip()
        absent = named.startswith("!")
        return Requirement(key=named.lstrip("! "), operator="DoesNotExist" if absent else "Exists")
    differs = key.endswith("!")
    return Requirement(
        key=key.rstrip("! ").strip(),
        operator="NotIn" if differs else "In",
        values=(value.strip(),),
    )
