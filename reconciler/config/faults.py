"""The stable fault codes of a sector config, and how a fault of one value is raised.

Messages are one line, quote at most a little of what was written, and never quote secrets.
"""

import itertools
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from pydantic_core import PydanticCustomError

from reconciler.model.errors import Problem

SYNTAX: Final = "config/syntax"
UNKNOWN_KEY: Final = "config/unknown-key"
TYPE: Final = "config/type"
RANGE: Final = "config/range"
SECTOR_KIND: Final = "sector/kind"
DUPLICATE_FLEET: Final = "sector/duplicate-fleet"
UNKNOWN_SIZE: Final = "sector/unknown-size"
TAGS_RESERVED: Final = "tags/reserved"
TAGS_LIMIT: Final = "tags/limit"
NAME_LABEL: Final = "name/label"
LABELS_RESERVED: Final = "labels/reserved"
DEFAULT_SECTOR: Final = "default-sector/unknown"
MODULE_VALUE: Final = "terraform/value"
MODULE_MISSING: Final = "terraform/missing"
MODULE_LIMIT: Final = "terraform/limit"
ZONE_WITHOUT_SUBNET: Final = "terraform/zone-without-subnet"
REGION_NOT_RENDERED: Final = "terraform/region-not-rendered"
NO_BACKEND: Final = "terraform/no-backend"
ARN_FOR_NAME: Final = "terraform/arn-for-name"
TAGS_WITHOUT_CLUSTER: Final = "terraform/tags-without-cluster"
TAGS_WITHOUT_FLEET: Final = "terraform/tags-without-fleet"
MANAGED_NODE_GROUP: Final = "terraform/managed-node-group"
UNKNOWN_TYPE: Final = "instance/unknown-type"
ARCHITECTURE: Final = "instance/architecture"
SIZE_CLAIM: Final = "instance/size-claim"
UNKNOWN_REGION: Final = "region/unknown"
OTHER_REGION: Final = "region/other"
FALLBACK_WITHOUT_SPOT: Final = "fleet/fallback-without-spot"
EXPIRY: Final = "fleet/expiry"
ALL_RESERVED: Final = "fleet/all-reserved"
UNUSED_PRIORITIES: Final = "expander/unused-priorities"
LIMIT_BELOW_MINIMA: Final = "fleet/limit-below-minima"
NO_COST_LIMIT: Final = "cost/no-limit"
BELOW_ONE_NODE: Final = "cost/below-one-node"

ALL_CODES: Final = (
    SYNTAX,
    UNKNOWN_KEY,
    TYPE,
    RANGE,
    SECTOR_KIND,
    DUPLICATE_FLEET,
    UNKNOWN_SIZE,
    TAGS_RESERVED,
    TAGS_LIMIT,
    NAME_LABEL,
    LABELS_RESERVED,
    DEFAULT_SECTOR,
    MODULE_VALUE,
    MODULE_LIMIT,
)
"""Faults of every command that reads a config."""
PURPOSE_CODES: Final = (MODULE_MISSING, ZONE_WITHOUT_SUBNET)
"""Faults of what renders."""
WARNING_CODES: Final = (
    NO_BACKEND,
    REGION_NOT_RENDERED,
    ARN_FOR_NAME,
    MANAGED_NODE_GROUP,
    TAGS_WITHOUT_CLUSTER,
    TAGS_WITHOUT_FLEET,
    UNKNOWN_TYPE,
    ARCHITECTURE,
    SIZE_CLAIM,
    UNKNOWN_REGION,
    OTHER_REGION,
    FALLBACK_WITHOUT_SPOT,
    EXPIRY,
    ALL_RESERVED,
    UNUSED_PRIORITIES,
    LIMIT_BELOW_MINIMA,
    NO_COST_LIMIT,
    BELOW_ONE_NODE,
)
"""Warnings of `validate` alone."""
_QUOTED_CHARACTERS = 60
_NUMBER = re.compile(r"([0-9]{1,9})")


def listed(names: Iterable[str]) -> str:
    """Return at most twelve names for a message: plain, or quoted when they have odd characters."""
    shown = itertools.islice(dict.fromkeys(names), 12)
    return ", ".join(n if n.isprintable() and len(n) <= 63 else quoted(n) for n in shown)


def quoted(text: str) -> str:
    """Return what was written, in quotes, on one line and short enough for a message."""
    cut = text if len(text) <= _QUOTED_CHARACTERS else text[: _QUOTED_CHARACTERS - 1] + "…"
    visible = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in cut)
    return f"'{visible}'"


def fault(code: str, message: str) -> PydanticCustomError:
    """Return an error for pydantic to collect; its type is the stable code."""
    return PydanticCustomError(code, "{message}", {"message": message})


def wrong_type(message: str) -> PydanticCustomError:
    """Return a `config/type` fault."""
    return fault(TYPE, message)


def out_of_range(message: str) -> PydanticCustomError:
    """Return a `config/range` fault."""
    return fault(RANGE, message)


def in_file_order(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Sort by place and drop repeats of a message at one place.

    A mapping that is reached through several aliases is one place with one fault.
    """
    unique: dict[tuple[int, int, str, str], Problem] = {}
    for problem in sorted(problems, key=_by_place):
        key = (problem.line, problem.column, problem.code, problem.message)
        unique.setdefault(key, problem)
    return tuple(unique.values())


def _by_place(problem: Problem) -> tuple[Problem, list[str | int]]:
    """Return a sort key; numbers in messages count by value, as places in another file do."""
    parts = _NUMBER.split(problem.message)
    numbered = [int(part) if n % 2 else part for n, part in enumerate(parts)]
    return replace(problem, message=""), numbered
