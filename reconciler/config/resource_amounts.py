"""Amounts of Kubernetes resources by name, as sizes and fleets state them."""

from functools import partial
from typing import Annotated, Final, TypeAlias

from pydantic import AfterValidator, BeforeValidator, WithJsonSchema

from reconciler.config import scalars
from reconciler.config.faults import out_of_range, quoted, wrong_type
from reconciler.config.types import QUANTITY_SCHEMA

_BYTES: Final = frozenset({"memory", "ephemeral-storage"})
_PREFIXES: Final = ("hugepages-", "attachable-volumes-")
_Milli: TypeAlias = Annotated[
    int,
    BeforeValidator(partial(scalars.quantity, scale=1000, scaled_max=1000 * scalars.QUANTITY_MAX)),
    WithJsonSchema(QUANTITY_SCHEMA),
]


def _to_model_units(amounts: dict[str, int]) -> dict[str, int]:
    """Keep milli-CPU, round bytes up to whole ones, and take whole numbers of everything else."""
    for name, value in amounts.items():
        if value % 1000 and name != "cpu" and not _is_in_bytes(name):
            raise wrong_type(f"{name} must be a whole number, as no part of one can be requested")
    return {name: v if name == "cpu" else -(-v // 1000) for name, v in amounts.items()}


def _is_in_bytes(name: str) -> bool:
    return name in _BYTES or name.startswith("hugepages-")


def _known(name: str) -> str:
    """Return the name; refuse one that no node can offer."""
    if name in {"cpu", "pods"} or name in _BYTES or name.startswith(_PREFIXES) or "/" in name:
        return name
    raise wrong_type(
        f"{quoted(name)} is no resource of Kubernetes: cpu, memory, pods, ephemeral-storage,"
        " hugepages-SIZE, or one with a domain such as nvidia.com/gpu"
    )


ResourceAmounts: TypeAlias = Annotated[
    dict[Annotated[str, AfterValidator(_known)], _Milli], AfterValidator(_to_model_units)
]
"""Amounts by resource name in the units of the model: milli for cpu, else whole units."""
_OF_THE_SIZE: Final = {
    "cpu": "cpu",
    "memory": "memory",
    "pods": "pods",
    "ephemeral-storage": "ephemeral_storage",
}


def _not_of_the_size(name: str) -> str:
    if name in _OF_THE_SIZE:
        key = _OF_THE_SIZE[name]
        raise out_of_range(f"{name} is not an extended resource; state it as `{key}` of the size")
    return _known(name)


ExtendedAmounts: TypeAlias = Annotated[
    dict[Annotated[str, AfterValidator(_not_of_the_size)], _Milli], AfterValidator(_to_model_units)
]
"""Amounts of resources for which a size has no key of its own."""
