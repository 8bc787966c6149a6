"""Which priority a fleet has for the expander `priority`."""

from reconciler.config.resolve import ResolvedFleet
from reconciler.config.schema import SectorConfig
from reconciler.planner.named_priorities import NamedPriorities, priority_of


def fleet_priority(fleet: ResolvedFleet) -> int:
    """Return its own; else that of the top level's expressions for its name or its group's."""
    entry = fleet.entry
    if "priority" in entry.model_fields_set:
        return entry.priority
    names = (fleet.name, entry.auto_scaling_group or "")
    return priority_of(names, named_priorities(fleet.config))


def named_priorities(config: SectorConfig) -> NamedPriorities:
    """Return the expressions of the top level, by rising number."""
    return tuple(sorted(config.expander_priorities.items()))
