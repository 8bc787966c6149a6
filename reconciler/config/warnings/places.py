"""Warnings about unknown Regions, and about zones and subnets outside of a fleet's Regions."""

from collections.abc import Collection, Iterator
from typing import Final

from reconciler.config.faults import OTHER_REGION, UNKNOWN_REGION, quoted
from reconciler.config.rules.document import Location
from reconciler.config.warnings.subject import Subject
from reconciler.model.errors import Problem

# fmt: off
REGIONS: Final = frozenset({
    "af-south-1", "ap-east-1", "ap-east-2", "ap-northeast-1", "ap-northeast-2", "ap-northeast-3",
    "ap-south-1", "ap-south-2", "ap-southeast-1", "ap-southeast-2", "ap-southeast-3",
    "ap-southeast-4", "ap-southeast-5", "ap-southeast-6", "ap-southeast-7", "ca-central-1",
    "ca-west-1", "eu-central-1", "eu-central-2", "eu-north-1", "eu-south-1", "eu-south-2",
    "eu-west-1", "eu-west-2", "eu-west-3", "il-central-1", "me-central-1", "me-south-1",
    "mx-central-1", "sa-east-1", "us-east-1", "us-east-2", "us-west-1", "us-west-2", "cn-north-1",
    "cn-northwest-1", "us-gov-east-1", "us-gov-west-1", "us-iso-east-1", "us-iso-west-1",
    "us-isob-east-1", "us-isob-west-1", "eu-isoe-west-1", "us-isof-east-1", "us-isof-south-1",
    "eusc-de-east-1",
})
# fmt: on
"""Regions of every partition with EC2 (AWS endpoints data; a test compares it with botocore's)."""


def unknown_regions(subject: Subject) -> Iterator[Problem]:
    """Yield a warning for each Region that is not in `REGIONS`."""
    root = subject.document.root
    mappings: list[tuple[Location, tuple[str, ...]]] = [((), subject.config.regions)]
    mappings += [
        (("sectors", name), sector.regions) for name, sector in subject.config.sectors.items()
    ]
    mappings += [(f.node.location, f.fleet.entry.regions) for f in subject.fleets]
    for location, regions in mappings:
        for index, region in enumerate(regions):
            if region not in REGIONS:
                place: Location = (*location, "regions", index)
                yield subject.warning(UNKNOWN_REGION, place, _unknown(region))
    backend = subject.config.terraform.backend
    if backend is not None and backend.region not in REGIONS and root.states("terraform"):
        place = ("terraform", "backend", "region")
        yield subject.warning(UNKNOWN_REGION, place, _unknown(backend.region))


def _unknown(region: str) -> str:
    return f"AWS has no region {quoted(region)} that this version knows (check the spelling)"


def zones_elsewhere(subject: Subject) -> Iterator[Problem]:
    """Yield a warning for each fleet whose zone is in none of its Regions."""
    for fleet in subject.fleets:
        zone, regions = fleet.fleet.entry.zone, fleet.fleet.regions
        if zone and regions and not _is_in_regions(zone, regions):
            shown = ", ".join(regions)
            message = f"zone {quoted(zone)} is in none of the fleet's regions ({shown})"
            yield subject.warning(OTHER_REGION, (*fleet.node.location, "zone"), message)


def subnets_elsewhere(subject: Subject) -> Iterator[Problem]:
    """Yield a warning for each subnet whose zone is in no Region of the fleets that use it."""
    regions_by_place: dict[Location, set[str]] = {}
    for fleet in subject.fleets_by_region:
        for zone in fleet.value("private_subnet_ids") or ():
            place = (*fleet.place_of("private_subnet_ids"), zone)
            regions = (fleet.fleet.region,) if fleet.fleet.region else fleet.fleet.regions
            regions_by_place.setdefault(place, set()).update(regions)
    for place, using in regions_by_place.items():
        zone = str(place[-1])
        if using and not _is_in_regions(zone, using):
            message = (
                f"the subnet of {quoted(zone)} is in none of the regions of the fleets that"
                f" use it ({', '.join(sorted(using))})"
            )
            yield subject.warning(OTHER_REGION, place, message)


def _is_in_regions(zone: str, regions: Collection[str]) -> bool:
    """Return whether a zone's name begins with one of the Regions: us-west-2a, us-west-2-lax-1a."""
    return any(zone.startswith(region) for region in regions)
