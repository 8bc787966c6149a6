"""Splits files with the AWS CLI's answers into answers with their regions."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from reconciler.model.errors import InputError
from reconciler.model.ids import REGION_PATTERN, Region
from reconciler.records.aws.state import ANSWER_KEYS
from reconciler.records.json_values import json_values

_REGION = re.compile(REGION_PATTERN, re.ASCII)
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")

NEWEST_FIRST: Final = frozenset({"Activities", "SpotPriceHistory"})
"""Answers of which the newest part is enough."""
_ASK_FOR_ALL: Final = {"HistoryRecords": "ask with a later --start-time: the oldest come first"}
"""How to ask for a whole answer of a kind that the AWS CLI does not page."""
HINT = "aws ec2 describe-fleets --output json writes such a file"


def split_answers(body: bytes, where: str, home: Region) -> list[tuple[Region, Mapping[str, Any]]]:
    """Return the answers in one file, which are JSON objects one after the other or in a list.

    Args:
        body: The whole file.
        where: Its name, for errors.
        home: The region of answers that do not state theirs (`Region`).

    Raises:
        InputError: The file is empty, not JSON, or something else than answers of the AWS CLI; an
            answer in it was cut off.
    """
    if not body.strip():
        raise InputError(where, "is empty", HINT)
    answers: list[tuple[Region, Mapping[str, Any]]] = []
    convert = _printable if _SURROGATE.search(body) else _as_it_is
    for found in json_values(body, where, HINT, convert, "an answer of AWS"):
        for answer in found if isinstance(found, list) else [found]:
            if not isinstance(answer, dict) or (answer and not ANSWER_KEYS & answer.keys()):
                raise InputError(where, "holds no answer of the AWS CLI that is used here", HINT)
            region = answer.get("Region", home)
            stated = "Region" in answer
            if not isinstance(region, str) or (stated and not _REGION.fullmatch(region)):
                raise InputError(where, "its `Region` is not a region's name", HINT)
            answers.append((Region(region), answer))
    _check_ends(answers, where)
    return answers


def _check_ends(answers: Iterable[tuple[Region, Mapping[str, Any]]], where: str) -> None:
    """Refuse answers of which more follows; every page of one may be in the file.

    Raises:
        InputError: The last page of one is not there.
    """
    following: dict[tuple[Region, str, str], Any] = {}
    for region, answer in answers:
        for key in (ANSWER_KEYS & answer.keys()) - NEWEST_FIRST:
            following[region, key, str(answer.get("FleetId"))] = answer.get("NextToken")
    for (region, key, _), token in sorted(following.items(), key=lambda item: item[0]):
        if token:
            what = f"its answer with `{key}` of {region} was cut off (`NextToken`)"
            raise InputError(
                where, what, _ASK_FOR_ALL.get(key, "ask without --max-items and --no-paginate")
            )


def _as_it_is(value: Any) -> Any:
    return value


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
