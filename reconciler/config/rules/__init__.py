"""The rules over several values of a sector config, one file per subject.

They read the tree, not the typed config, so that they check every part that can be read even if
another part is wrong: all faults are reported at once.
"""

from collections.abc import Iterator

from reconciler.config.rules import (
    capacities,
    disruption_budgets,
    election,
    groups,
    headroom,
    kinds,
    labels,
    names,
    tags,
)
from reconciler.config.rules.document import Document
from reconciler.config.tree import Mapping
from reconciler.model.errors import Problem

_RULES = (
    names.check_names,
    kinds.check_kinds,
    kinds.check_sizes,
    kinds.check_duplicates,
    groups.check_groups_once,
    kinds.check_default_sector,
    capacities.check_capacities,
    disruption_budgets.check_disruption_budgets,
    headroom.check_headroom,
    election.check_election,
    tags.check_reserved,
    tags.check_limits,
    labels.check_labels,
)


def check_rules(root: Mapping, cluster_name: str | None = None) -> Iterator[Problem]:
    """Yield every fault that involves several values, in any order.

    Args:
        root: The config.
        cluster_name: Name given outside the file; it overrides the file's.
    """
    document = Document(root, cluster_name)
    for rule in _RULES:
        yield from rule(document)
