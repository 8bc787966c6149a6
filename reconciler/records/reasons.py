"""Why an object or an entry of an answer cannot be read, in one bounded line."""

from typing import Final

from reconciler.model.text import escape_surrogates

DETAIL_CHARACTERS_MAX: Final = 200


def reason_of(error: Exception) -> str:
    """Return a decoder's message about an object that it cannot read."""
    if isinstance(error, RecursionError):
        return "is nested too deeply"
    text = " ".join(str(error).split()) or type(error).__name__
    return escape_surrogates(text[:DETAIL_CHARACTERS_MAX])
