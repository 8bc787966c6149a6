"""Why an object or an entry of an answer cannot be read, in one bounded line."""

from typing import Final

DETAIL_CHARACTERS_MAX: Final = 200


def reason_of(error: Exception) -> str:
    """Return a decoder's message about an object that it cannot read."""
    if isinstance(error, RecursionError):
        return "is nested too deeply"
    text = " ".join(str(error).split()) or type(error).__name__
    return printable(text[:DETAIL_CHARACTERS_MAX])


def printable(text: str) -> str:
    """Return a text as UTF-8 can encode it.

    Lone surrogates cannot be printed; JSON and names of files that are not UTF-8 may hold them.
    """
    return text.encode("utf-8", "backslashreplace").decode()
