"""`name/label`: names that become label values, tag values and resource names."""

import re
from collections.abc import Iterator
from typing import Final

from reconciler.config.faults import NAME_LABEL, quoted
from reconciler.config.rules.document import Document, FleetNode, Location
from reconciler.config.tree import text_of
from reconciler.model.errors import Problem, UsageError

LABEL_VALUE_MAX: Final = 63
_LABEL_VALUE: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?", re.ASCII)
_FLEET_ADDRESSES: Final = ("aws_ec2_fleet.", "aws_autoscaling_group.")
LAUNCH_TEMPLATE_NAME_MAX: Final = 125
"""EC2 takes 128 characters, Terraform's AWS provider 125 (aws_launch_template, read 2026-11); ours
is `<cluster>-<fleet>`, of an Auto Scaling group with `-group` behind it."""


def label_value_fault(text: str) -> str | None:
    """Return why a text is not a label value (an empty one is invalid here), None when it is."""
    if len(text) > LABEL_VALUE_MAX:
        return f"{quoted(text)} has {len(text)} characters, a label value has at most 63"
    if _LABEL_VALUE.fullmatch(text) is None:
        return (
            f"{quoted(text)} is not a valid label value: letters, digits, '-', '_', '.',"
            " a letter or digit at both ends"
        )
    return None


def check_cluster_name(name: str, place: str = "--cluster-name") -> None:
    """Refuse an invalid cluster name that was given outside of the config.

    Raises:
        UsageError: It is not a label value.
    """
    wrong = label_value_fault(name)
    if wrong is not None:
        raise UsageError(place, wrong)


def check_names(document: Document) -> Iterator[Problem]:
    """Check cluster, sectors, own sizes and kinds, and the fleets' full names."""
    for location, text in _single_names(document):
        if (wrong := label_value_fault(text)) is not None:
            yield document.problem(NAME_LABEL, location, wrong)
    yield from _check_fleet_names(document)


def _single_names(document: Document) -> Iterator[tuple[Location, str]]:
    """Yield every name that must be a label value by itself."""
    for key in ("cluster", "cluster_name"):
        if (cluster := document.root.text(key)) is not None:
            yield (key,), cluster
    for name in document.root.mapping("sectors").entries:
        yield ("sectors", name), name
    for name, size in document.own_sizes().items():
        yield ("sizes", name), name
        if (kind := size.text("kind")) is not None:
            yield ("sizes", name, "kind"), kind
    for fleet in document.fleets():
        if (zone := fleet.entry.text("zone")) is not None:
            yield (*fleet.location, "zone"), zone
    for index, item in document.root.items("allow_destroy"):
        named = text_of(item.value)
        # A fleet without a `fleet` tag, from a hand-written module, is named by its address.
        if named is not None and not any(
            fleet_address in named for fleet_address in _FLEET_ADDRESSES
        ):
            yield ("allow_destroy", index), named


def _check_fleet_names(document: Document) -> Iterator[Problem]:
    """Check that a fleet's full name is a label value and fits into its launch template's name."""
    for fleet in document.fleets():
        name, size = fleet.name, fleet.entry.text("size")
        if name is None or size is None or label_value_fault(fleet.sector_name) is not None:
            continue
        location = (*fleet.location, "size")
        if (wrong := label_value_fault(size)) is not None:
            yield document.problem(NAME_LABEL, location, wrong)
        elif len(name) > LABEL_VALUE_MAX:
            message = f"the fleet's name {quoted(name)} has {len(name)} characters, at most 63 fit"
            yield document.problem(NAME_LABEL, location, message)
        elif _template_name_length(document, fleet) > LAUNCH_TEMPLATE_NAME_MAX:
            message = "cluster and fleet name together are too long for a launch template's name"
            yield document.problem(NAME_LABEL, location, f"{message} (125 characters)")


def _template_name_length(document: Document, fleet: FleetNode) -> int:
    """Return the length of the launch template's name; 0 while the cluster is not named."""
    end = "-group" if fleet.entry.text("provider") == "asg" else ""
    return len(f"{document.cluster}-{fleet.name}{end}") if document.cluster else 0
