"""Warnings about instance types: unknown ones, unmet claims of sizes, mixed architectures."""

from collections.abc import Iterator, Mapping

from reconciler.config.faults import ARCHITECTURE, SIZE_CLAIM, UNKNOWN_TYPE, listed
from reconciler.config.fleets import OwnSize
from reconciler.config.module.fleet import WrittenFleet
from reconciler.config.rules.document import Location
from reconciler.config.terraform import is_ami_alias
from reconciler.config.warnings.subject import Subject
from reconciler.model.errors import Problem
from reconciler.model.fleet import InstanceType

ARCHITECTURE_OF_IMAGES = {"amd64": "x86_64", "arm64": "arm64"}
"""What the publishers of images call the architectures of Kubernetes."""
_GPU = "nvidia.com/gpu"
_GIB = 2**30


def unknown_types(subject: Subject) -> Iterator[Problem]:
    """Yield a warning for each instance type that the catalogue does not know."""
    lists: list[tuple[Location, tuple[str, ...]]] = [
        (("sizes", name), size.instance_types) for name, size in subject.config.sizes.items()
    ]
    lists += [(f.node.location, f.fleet.entry.instance_types) for f in subject.fleets]
    for location, types in lists:
        for index, name in enumerate(types):
            if name not in subject.catalogue:
                message = (
                    f"instance type {name} is not in the catalogue: no price and no size is known"
                    " for it (check the spelling; `reconciler catalogue refresh` asks EC2)"
                )
                yield subject.warning(UNKNOWN_TYPE, (*location, "instance_types", index), message)


def claims(subject: Subject) -> Iterator[Problem]:
    """Yield a warning for each own size that claims more than its smallest instance type has."""
    for name, size in subject.config.sizes.items():
        for key, message in _claims_of(size, subject.catalogue):
            yield subject.warning(SIZE_CLAIM, ("sizes", name, key), message)


def _claims_of(size: OwnSize, catalogue: Mapping[str, InstanceType]) -> Iterator[tuple[str, str]]:
    known = [catalogue[name] for name in size.instance_types if name in catalogue]
    for key, claimed, have, shown in (
        ("cpu", size.cpu_milli, {t.name: t.cpu_milli for t in known}, _cpus),
        ("memory", size.memory_bytes, {t.name: t.memory_bytes for t in known}, _gib),
        ("pods", size.pods or 0, {t.name: t.pods_max for t in known}, str),
        ("extended", size.extended.get(_GPU, 0), {t.name: t.gpus for t in known}, str),
    ):
        least = min(have, key=lambda name: (have[name], name), default=None)
        # More pods than the network plugin's figure is normal with prefix delegation.
        if least is None or claimed <= have[least] or key == "pods":
            continue
        what = _GPU if key == "extended" else key
        message = (
            f"claims {what} {shown(claimed)}, {least} has {shown(have[least])}: pods that are"
            " planned onto such a node would not fit"
        )
        yield key, message


def _cpus(milli: int) -> str:
    return f"{milli / 1000:g}"


def _gib(amount: int) -> str:
    return f"{amount / _GIB:g}Gi"


def architectures(subject: Subject) -> Iterator[Problem]:
    """Yield a warning for each fleet whose instance types are of several architectures."""
    for fleet in subject.fleets:
        arches = _arches(fleet, subject.catalogue)
        if len(arches) > 1:
            message = (
                f"its instance types are of several architectures ({listed(sorted(arches))});"
                " an image boots on one"
            )
            yield subject.warning(ARCHITECTURE, fleet.node.location, message)
    for name, size in subject.config.sizes.items():
        known = {subject.catalogue[t].arch for t in size.instance_types if t in subject.catalogue}
        if size.arch is not None and known and known != {size.arch}:
            message = f"arch is {size.arch}, its instance types are {listed(sorted(known))}"
            yield subject.warning(ARCHITECTURE, ("sizes", name, "arch"), message)


def images(subject: Subject) -> Iterator[Problem]:
    """Yield a warning for each fleet whose image is for another architecture than its types."""
    first: dict[tuple[str, str], tuple[str, str]] = {}
    for fleet in subject.fleets:
        arches = _arches(fleet, subject.catalogue)
        ami = fleet.text("ami")
        if not ami or len(arches) != 1:
            continue
        (arch,) = arches
        wanted = fleet.text("architecture") or "x86_64"
        if is_ami_alias(ami) and ARCHITECTURE_OF_IMAGES[arch] != wanted:
            message = (
                f"its instance types are {arch}, and {ami} is looked up for {wanted}: set"
                f" terraform.architecture to {ARCHITECTURE_OF_IMAGES[arch]}"
            )
            yield subject.warning(ARCHITECTURE, fleet.node.location, message)
            continue
        other, name = first.setdefault((ami, wanted), (arch, fleet.fleet.name))
        if other != arch:
            message = (
                f"its nodes are {arch} and boot {ami}, which fleet {name} boots on {other}:"
                f" give it an {arch} image (terraform.ami of the sector or fleet)"
            )
            yield subject.warning(ARCHITECTURE, fleet.node.location, message)


def _arches(fleet: WrittenFleet, catalogue: Mapping[str, InstanceType]) -> set[str]:
    """Return the architectures of a fleet's instance types, as far as they are known."""
    return {catalogue[name].arch for name in fleet.fleet.instance_types if name in catalogue}
