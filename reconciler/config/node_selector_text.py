"""Node selectors written as text: `key=value,other!=value,key,!key`."""

from reconciler.config.faults import quoted, wrong_type
from reconciler.config.rules.labels import malformed
from reconciler.model.selectors import LabelSelector, Requirement


def parse_node_selector(text: str) -> LabelSelector | None:
    """Return the selector; None for an empty text.

    Raises:
        PydanticCustomError: It has another form; sets (`key in (a, b)`) and comparisons (`key>3`)
            are not supported.
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
    absent, differs = key.startswith("!"), bool(operator) and key.endswith("!")
    key, value = key.removeprefix("!").removesuffix("!" if differs else "").strip(), value.strip()
    if (absent and operator) or next(malformed("label", key, value), None) is not None:
        form = "`key=value`, `key!=value`, `key` or `!key`"
        raise wrong_type(f"{quoted(part.strip())} is not {form} of a label")
    if not operator:
        return Requirement(key=key, operator="DoesNotExist" if absent else "Exists")
    return Requirement(key=key, operator="NotIn" if differs else "In", values=(value,))
