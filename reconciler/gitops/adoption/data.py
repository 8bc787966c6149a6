"""What programs and AWS answer, taken apart without trust: another kind of value counts as none."""

from collections.abc import Mapping
from typing import Any

Data = Mapping[str, Any]


def mapping(value: object) -> Data:
    """The value if it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def mappings(value: object) -> list[Data]:
    """The mappings of a list, none of anything else."""
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []
