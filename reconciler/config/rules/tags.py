"""`tags/reserved` and `tags/limit`: what EC2 and the module allow of own tags.

Limits: EC2 user guide, "Tag restrictions": 50 per resource, keys to 128, values to 256 characters.
Everything else arrives literally.
"""

import unicodedata
from collections.abc import Iterator
from typing import Final

from reconciler.config.faults import TAGS_LIMIT, TAGS_RESERVED, quoted
from reconciler.config.rules.document import Document, FleetNode, Location
from reconciler.config.tree import Mapping, Scalar
from reconciler.model.errors import Problem

TAGS_MAX: Final = 50
OUR_TAGS: Final = 8
KEY_MAX: Final = 128
VALUE_MAX: Final = 256
RESERVED: Final = frozenset(
    {"Name", "Spot", "cluster", "fleet", "sector", "kind", "size", "name", "managed"}
)


def _levels(document: Document) -> Iterator[tuple[Location, Mapping]]:
    """Yield every `tags` of module variables."""
    for location, variables in document.module_variables():
        yield (*location, "tags"), variables.mapping("tags")


def check_reserved(document: Document) -> Iterator[Problem]:
    """Yield keys that the module sets itself or that AWS reserves; one fault per key."""
    reserved = RESERVED | {f"kubernetes.io/cluster/{document.cluster}"}
    for location, tags in _levels(document):
        for key in tags.entries:
            if key in reserved:
                message = f"tag key {quoted(key)} is reserved: it is set for every fleet"
                yield document.problem(TAGS_RESERVED, (*location, key), message)
            elif key.lower().startswith("aws:"):
                message = f"tag key {quoted(key)}: the prefix aws: is reserved by AWS"
                yield document.problem(TAGS_RESERVED, (*location, key), message)


def check_limits(document: Document) -> Iterator[Problem]:
    """Check lengths, control characters and the number of tags."""
    for location, tags in _levels(document):
        for key, entry in tags.entries.items():
            value = entry.value.text if isinstance(entry.value, Scalar) else ""
            for message in _limits_of(key, value):
                yield document.problem(TAGS_LIMIT, (*location, key), message)
    yield from _check_numbers(document)


def _limits_of(key: str, value: str) -> Iterator[str]:
    """Yield what is wrong with one tag by itself."""
    if not 1 <= len(key) <= KEY_MAX:
        yield f"a tag key has 1 to {KEY_MAX} characters, this one {len(key)}"
    if len(value) > VALUE_MAX:
        yield f"a tag value has at most {VALUE_MAX} characters, that of {quoted(key)} {len(value)}"
    if key.startswith("%"):  # Terraform writes maps as `tags.<key>`, and their size as `tags.%`
        yield f"tag key {quoted(key)}: Terraform's AWS provider loses keys that begin with %"
    if any(unicodedata.category(character) == "Cc" for character in key + value):
        yield f"tag {quoted(key)} has control characters"


def _check_numbers(document: Document) -> Iterator[Problem]:
    """Check the number over the three levels; the fault is where the limit is exceeded."""
    top = set(document.root.mapping("terraform").mapping("tags").entries)
    if len(top) + OUR_TAGS > TAGS_MAX:
        yield document.problem(TAGS_LIMIT, ("terraform", "tags"), _too_many(len(top)))
        return
    for name, sector in document.sectors():
        inherited = top | set(sector.mapping("terraform").mapping("tags").entries)
        if len(inherited) + OUR_TAGS > TAGS_MAX:
            location: Location = ("sectors", name, "terraform", "tags")
            yield document.problem(TAGS_LIMIT, location, _too_many(len(inherited)))
            continue
        for fleet in document.fleets_of(name, sector):
            every = inherited | set(fleet.entry.mapping("terraform").mapping("tags").entries)
            if len(every) + OUR_TAGS > TAGS_MAX:
                location = (*fleet.location, "terraform", "tags")
                yield document.problem(TAGS_LIMIT, location, _too_many(len(every)))
                continue
            yield from _check_number_in_regions(document, fleet, every)


def _check_number_in_regions(
    document: Document, fleet: FleetNode, elsewhere: set[str]
) -> Iterator[Problem]:
    """Check the number with the tags that `by_region` adds in the fleet's Regions."""
    by_region = document.root.mapping("terraform").mapping("by_region")
    for region in sorted(document.regions_of(fleet) & set(by_region.entries)):
        every = elsewhere | set(by_region.mapping(region).mapping("tags").entries)
        if len(every) + OUR_TAGS > TAGS_MAX:
            location: Location = ("terraform", "by_region", region, "tags")
            yield document.problem(TAGS_LIMIT, location, _too_many(len(every)))


def _too_many(count: int) -> str:
    """Return the message with the number."""
    return (
        f"{count} tags and {OUR_TAGS} of the module are {count + OUR_TAGS}, EC2 allows {TAGS_MAX}"
    )
