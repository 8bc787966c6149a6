"""Splits files with the AWS CLI's answers into answers with their regions."""

import json
import re
from collections.abc import Mapping
from typing import Any

from reconciler.model.errors import InputError
from reconciler.model.ids import Region
from reconciler.records.aws.state import ANSWER_KEYS

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")

HINT = "aws ec2 describe-fleets --output json writes such a file"


def split_answers(body: bytes, where: str, home: Region) -> list[tuple[Region, Mapping[str, Any]]]:
    """Return the answers in one file, which are JSON objects one after the other or in a list.

    Args:
        body: The whole file.
        where: Its name, for errors.
        home: The region of answers that do not state theirs (`Region`).

    Raises:
        InputError: The file is empty, not JSON, or something else than answers of the AWS CLI.
    """
    if not body.strip():
        raise InputError(where, "is empty", HINT)
    answers: list[tuple[Region, Mapping[str, Any]]] = []
    for found in _values(body, where):
        for answer in found if isinstance(found, list) else [found]:
            if not isinstance(answer, dict) or (answer and not ANSWER_KEYS & answer.keys()):
                raise InputError(where, "holds no answer of the AWS CLI that is used here", HINT)
            region = answer.get("Region", home)
            if not isinstance(region, str) or not region:
                raise InputError(where, "its `Region` is not a region's name", HINT)
            answers.append((Region(region), answer))
    return answers


def _values(body: bytes, where: str) -> list[Any]:
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(where, f"is not text in UTF-8 (byte {error.start})", HINT) from None
    decoder = json.JSONDecoder()
    values: list[Any] = []
    try:
        position = _skip_space(text, 0)
        while position < len(text):
            value, position = decoder.raw_decode(text, position)
            values.append(_printable(value) if _SURROGATE.search(text) else value)
            position = _skip_space(text, position)
    except json.JSONDecodeError as error:
        place = f"{where}:{error.lineno}:{error.colno}"
        raise InputError(place, f"is not JSON: {error.msg}", HINT) from None
    except ValueError:  # Python refuses to read integers of more than 4,300 digits
        raise InputError(where, "holds a number that is too large to read", HINT) from None
    except RecursionError:
        raise InputError(where, "is nested too deeply for an answer of AWS", HINT) from None
    return values


def _printable(value: Any) -> Any:
    """Return the value with lone surrogates, which cannot be printed, replaced."""
    match value:
        case dict():
            return {_printable(key): _printable(each) for key, each in value.items()}
        case list():
            return [_printable(each) for each in value]
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case _:
            return value


def _skip_space(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\r\n":
        position += 1
    return position
