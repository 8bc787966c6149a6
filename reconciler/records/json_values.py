"""Reads JSON values that follow each other in a file, also with what strict JSON forbids."""

import json
import re
from collections.abc import Callable
from typing import Any, TypeVar

from reconciler.model.errors import InputError

_SPACE = re.compile(r"\s*")

Converted = TypeVar("Converted")


def json_values(
    body: bytes, where: str, hint: str, convert: Callable[[Any], Converted], what: str
) -> list[Converted]:
    """Return all values of a file; NaN and infinities are read like numbers.

    Args:
        body: The whole file.
        where: Its name, for errors.
        hint: What writes such files, for errors.
        convert: Applied to each value.
        what: What a value stands for, for errors.

    Raises:
        InputError: The file is no text in UTF-8, or not JSON.
    """
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(where, f"is not text in UTF-8 (byte {error.start})", hint) from None
    decoder = json.JSONDecoder()
    values: list[Converted] = []
    try:
        position = _after_space(text, 0)
        while position < len(text):
            value, end = decoder.raw_decode(text, position)
            values.append(convert(value))
            position = _after_space(text, end)
    except json.JSONDecodeError as error:
        place = f"{where}:{error.lineno}:{error.colno}"
        raise InputError(place, f"is not JSON: {error.msg}", hint) from None
    except ValueError:  # Python refuses to read integers of more than 4,300 digits
        raise InputError(where, "holds a number that is too large to read", hint) from None
    except RecursionError:
        raise InputError(where, f"is nested too deeply for {what}", hint) from None
    return values


def _after_space(text: str, position: int) -> int:
    found = _SPACE.match(text, position)
    return found.end() if found else position
