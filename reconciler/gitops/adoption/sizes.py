"""Determines kinds and sizes of live fleets and groups from their instance types; pure."""

from collections.abc import Mapping
from typing import Any, Final

from reconciler.config.sizes import BUILT_IN_KINDS, BUILT_IN_SIZES
from reconciler.model.fleet import InstanceType

_GIB: Final = 2**30
_MEMORY_PER_CPU_BYTES: Final = 4 * _GIB
"""A type with at least 4 GiB per vCPU (m, r, x families) counts as `memory`."""
Catalogue = Mapping[str, InstanceType]


def built_in_kind(size: str, types: tuple[str, ...]) -> str:
    """Return the kind whose built-in size of this name has these types; empty without one."""
    for kind in BUILT_IN_KINDS:
        built_in = BUILT_IN_SIZES.get((kind, size))
        if built_in is not None and set(types) <= set(built_in.instance_types):
            return kind
    return ""


def guessed_kind(types: tuple[str, ...], catalogue: Catalogue) -> str:
    """Return the kind by the first known type's memory per vCPU."""
    known = next((catalogue[name] for name in types if name in catalogue), None)
    if known is None:
        return "memory"
    return (
        "memory" if known.memory_bytes * 1000 >= known.cpu_milli * _MEMORY_PER_CPU_BYTES else "cpu"
    )


def own_size_of(
    kind: str, size: str, types: tuple[str, ...], catalogue: Catalogue
) -> dict[str, Any] | None:
    """Return an own size for names without a built-in one: the least that every type offers."""
    if (kind, size) in BUILT_IN_SIZES:
        return None
    known = [catalogue[name] for name in types if name in catalogue]
    if not known:
        return {"kind": kind, "cpu": 1, "memory": "1Gi", "instance_types": list(types)}
    cpu_milli = min(instance_type.cpu_milli for instance_type in known)
    made: dict[str, Any] = {
        "kind": kind,
        "cpu": cpu_milli // 1000 if cpu_milli % 1000 == 0 else f"{cpu_milli}m",
        "memory": f"{min(each.memory_bytes for each in known) // 2**20}Mi",
        "instance_types": list(types),
    }
    gpus = min(instance_type.gpus for instance_type in known)
    return {**made, "extended": {"nvidia.com/gpu": gpus}} if gpus else made


def unknown_types(
    own_size: Mapping[str, Any] | None,
    types: tuple[str, ...],
    catalogue: Catalogue,
) -> tuple[str, ...]:
    """Return a note on an own size about which nothing is known."""
    if own_size is None or any(name in catalogue for name in types):
        return ()
    return ("the catalogue knows none of its instance types: correct CPU and memory of its size",)
