"""What is legal in a sector config and probably wrong, one file per subject.

A warning reads a config without faults. It goes to `ALWAYS` when it shows a mistake whatever the
config is used for. It goes to `STRICT` when many configs are right as they are (no Terraform
backend, say): those are only given by `validate --strict`, so that a plain config stays clean. To
add one: a function from `Subject` to problems made with `Subject.warning`, a code in
`reconciler.config.faults`, and a line in one of the two tables.
"""

from collections.abc import Callable, Iterator
from typing import Final

from reconciler.config.warnings import capacity, instance_types, names, places, terraform
from reconciler.config.warnings.subject import Subject
from reconciler.model.errors import Problem

Warning_ = Callable[[Subject], Iterator[Problem]]

ALWAYS: Final[tuple[Warning_, ...]] = (
    instance_types.unknown_types,
    instance_types.claims,
    instance_types.architectures,
    instance_types.images,
    places.unknown_regions,
    places.zones_elsewhere,
    places.subnets_elsewhere,
    capacity.fallback_without_spot,
    capacity.useless_expiry,
    capacity.all_reserved,
    capacity.limit_below_minima,
    capacity.below_one_node,
    names.arns,
    names.unused_priorities,
    terraform.groups_of_eks,
    terraform.tags_without_cluster,
    terraform.tags_without_fleet,
)
STRICT: Final[tuple[Warning_, ...]] = (
    terraform.no_block,
    terraform.no_backend,
    terraform.regions_without_a_root,
    capacity.no_cost_limit,
)


def check_warnings(subject: Subject, *, strict: bool) -> Iterator[Problem]:
    """Yield every warning of a config; those of `STRICT` when asked for."""
    for warning in (*ALWAYS, *(STRICT if strict else ())):
        yield from warning(subject)
