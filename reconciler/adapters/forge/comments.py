"""Comments that can be found again by an invisible first line."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import quote

_CUT = "\n\n… cut: the rest does not fit into a comment."


def marked(marker: str, body: str, longest: int) -> str:
    """Return the body below its marker, cut to the forge's limit."""
    text = f"{_line(marker)}\n{body}"
    return text if len(text) <= longest else text[: longest - len(_CUT)] + _CUT


def with_marker(
    comments: Iterable[Any], marker: str, is_foreign: Callable[[Mapping[str, Any]], bool]
) -> int | None:
    """Return the id of our first comment with this marker, None without one.

    Anyone can write the marker, and the author of a comment can change it at any time, so foreign
    comments must not be used.
    """
    for comment in comments:
        if not isinstance(comment, Mapping):
            continue
        body, number = comment.get("body"), comment.get("id")
        if not isinstance(body, str) or not isinstance(number, int):
            continue
        if body.startswith(_line(marker)) and not is_foreign(comment):
            return number
    return None


def _line(marker: str) -> str:
    # Two hyphens or a line break would end the HTML comment.
    name = quote(marker, safe="/ ", errors="surrogatepass").replace("--", "-%2D")
    return f"<!-- fleet-reconciler: {name} -->"
