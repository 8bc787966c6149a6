"""Reads untrusted JSON of programs and AWS: a value of an unexpected type counts as missing."""

from collections.abc import Mapping
from typing import Any

Data = Mapping[str, Any]


def mapping(value: object) -> Data:
    """Return the value if it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def mappings(value: object) -> list[Data]:
    """Return the mappings of a list; empty for anything else."""
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []
