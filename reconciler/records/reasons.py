"""Why an object or an entry of an answer cannot be read, in one bounded line."""

from typing import Final

DETAIL_CHARACTERS_MAX: Final = 200


def reason_of(error: Exception) -> str:
    """Return what a decoder says of an object that it cannot read."""
    if isinstance(error, RecursionError):
        return "is nested too deeply"
    text = " ".join(str(error).split()) or type(error).__name__
    # Half a surrogate pair, which JSON may hold, could not be printed.
    return text[:DETAIL_CHARACTERS_MAX].encode("utf-8", "backslashreplace").decode()
