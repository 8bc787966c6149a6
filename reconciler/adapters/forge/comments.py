"""Comments that can be found again: an invisible first line says whose they are."""

from collections.abc import Iterable, Mapping
from typing import Any

_CUT = "\n\n… cut: the rest does not fit into a comment."


def marked(marker: str, body: str, longest: int) -> str:
    """The body below its marker, cut to what the forge takes."""
    text = f"{_line(marker)}\n{body}"
    return text if len(text) <= longest else text[: longest - len(_CUT)] + _CUT


def with_marker(comments: Iterable[Any], marker: str) -> int | None:
    """Id of the first comment under this marker, None without one."""
    for comment in comments:
        if not isinstance(comment, Mapping):
            continue
        body, number = comment.get("body"), comment.get("id")
        if isinstance(body, str) and isinstance(number, int) and body.startswith(_line(marker)):
            return number
    return None


def _line(marker: str) -> str:
    # Two hyphens would end the HTML comment.
    return f"<!-- fleet-reconciler: {marker.replace('--', '- -')} -->"
