"""What decides between fleets that could run the same pods: priorities, and which are alike."""

from reconciler.config.resolve import ResolvedFleet
from reconciler.config.schema import SectorConfig
from reconciler.planner.named_priorities import NamedPriorities, priority_of
from reconciler.planner.settings import BalanceSettings


def fleet_priority(fleet: ResolvedFleet) -> int:
    """Return its priority for the expander `priority`.

    Its own; else that of the top level's expressions for its name or its group's.
    """
    entry = fleet.entry
    if "priority" in entry.model_fields_set:
        return entry.priority
    names = (fleet.name, entry.auto_scaling_group or "")
    return priority_of(names, named_priorities(fleet.config))


def named_priorities(config: SectorConfig) -> NamedPriorities:
    """Return the expressions of the top level, by rising number."""
    return tuple(sorted(config.expander_priorities.items()))


def balance_settings(config: SectorConfig) -> BalanceSettings | None:
    """Return which fleets are alike, as the top level says it; None if fleets are not balanced."""
    if not config.balance_similar_groups:
        return None
    return BalanceSettings(
        ignored_labels=frozenset(config.balancing_ignore_labels),
        labels=frozenset(config.balancing_labels),
    )
