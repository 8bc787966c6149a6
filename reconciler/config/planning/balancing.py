"""Which fleets are alike, as the top level of a config says it."""

from reconciler.config.schema import SectorConfig
from reconciler.planner.settings import BalanceSettings


def balance_settings(config: SectorConfig) -> BalanceSettings | None:
    """Return the planner's settings; None if fleets are not balanced."""
    if not config.balance_similar_groups:
        return None
    return BalanceSettings(
        ignored_labels=frozenset(config.balancing_ignore_labels),
        labels=frozenset(config.balancing_labels),
    )
