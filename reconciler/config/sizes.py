"""The built-in sizes: resources of each kind and size, and the types EC2 may choose.

Source: the project's behaviour contract, section 3; they are the sizes of Kluster Fleet Manager.
"""

from dataclasses import dataclass
from typing import Final

_GIB: Final = 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltInSize:
    """One row of the table: the least that every option gives."""

    kind: str
    name: str
    cpu_milli: int
    memory_bytes: int
    instance_types: tuple[str, ...]


def _size(kind: str, name: str, cpus: int, memory_gib: float, types: str) -> BuiltInSize:
    """Return a row from its human form."""
    return BuiltInSize(
        kind=kind,
        name=name,
        cpu_milli=cpus * 1000,
        memory_bytes=int(memory_gib * _GIB),
        instance_types=tuple(types.split()),
    )


_TABLE: Final = (
    _size("memory", "xsmall", 2, 15.25, "r5.large r4.large m5.xlarge m4.xlarge"),
    _size("memory", "small", 4, 30.5, "r5.xlarge r4.xlarge m5.2xlarge m4.2xlarge"),
    _size("memory", "medium", 8, 61, "r5.2xlarge r4.2xlarge m5.4xlarge m4.4xlarge"),
    _size("memory", "large", 16, 122, "r5.4xlarge r4.4xlarge m5.8xlarge m4.10xlarge"),
    _size("memory", "xlarge", 32, 244, "r5.8xlarge r4.8xlarge m5.16xlarge m4.16xlarge"),
    _size("cpu", "xsmall", 4, 7.5, "c5.xlarge c4.xlarge m5.xlarge m4.xlarge"),
    _size("cpu", "small", 8, 15, "c5.2xlarge c4.2xlarge m5.2xlarge m4.2xlarge"),
    _size("cpu", "medium", 16, 30, "c5.4xlarge c4.4xlarge m5.4xlarge m4.4xlarge"),
    _size("cpu", "large", 36, 60, "c5.9xlarge c4.8xlarge m5.12xlarge m4.10xlarge"),
    _size("cpu", "xlarge", 64, 144, "c5.18xlarge m5.16xlarge m4.16xlarge"),
)

BUILT_IN_SIZES: Final = {(size.kind, size.name): size for size in _TABLE}
"""By kind and name."""
BUILT_IN_KINDS: Final = ("memory", "cpu")
BUILT_IN_SIZE_NAMES: Final = ("xsmall", "small", "medium", "large", "xlarge")
