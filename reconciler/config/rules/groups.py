"""`sector/duplicate-fleet` of Auto Scaling groups: a group belongs to one fleet."""

from collections.abc import Iterator

from reconciler.config.faults import DUPLICATE_FLEET, quoted
from reconciler.config.rules.document import Document, FleetNode
from reconciler.model.errors import Problem


def check_groups_once(document: Document) -> Iterator[Problem]:
    """Check that fleets do not share a group; equal names in two Regions are two groups."""
    owners: dict[str, list[FleetNode]] = {}
    for fleet in document.fleets():
        group = fleet.entry.text("auto_scaling_group")
        if group is None or fleet.entry.text("provider") != "asg":
            continue
        others = owners.setdefault(group, [])
        first = next(
            (fleet_node for fleet_node in others if _meet(document, fleet, fleet_node)), None
        )
        if first is not None:
            message = (
                f"Auto Scaling group {quoted(group)} already belongs to fleet"
                f" {quoted(first.name or '')} on line {document.place(first.location).line};"
                " give each fleet a group of its own"
            )
            location = (*fleet.location, "auto_scaling_group")
            yield document.problem(DUPLICATE_FLEET, location, message)
        others.append(fleet)


def _meet(document: Document, one: FleetNode, other: FleetNode) -> bool:
    """Return whether both fleets are certainly in one Region."""
    ours, theirs = document.regions_of(one), document.regions_of(other)
    return ours == theirs or not ours.isdisjoint(theirs)
