"""Keys of a sector config that are accepted before the feature behind them is there.

They are part of the public contract, so a config that states them is valid. Whoever takes one of
them into use takes it out of here, and "Accepted, not acted on yet." out of its docstrings.
"""

from reconciler.config.schema import SectorConfig


def not_acted_on(config: SectorConfig) -> tuple[str, ...]:
    """What the config asks for and nothing does yet, as keys; a part that is off asks nothing."""
    fleets = [fleet for sector in config.sectors.values() for fleet in sector.fleets]
    asked = {
        "maintenance_windows": bool(config.maintenance_windows),
        "spot_rescheduler": config.spot_rescheduler.enabled,
        "descheduler": config.descheduler.enabled,
        "rolling_update": config.rolling_update.enabled,
        "interruption.queue_url": bool(config.interruption.queue_url),
        "expire_after": any(fleet.expire_after_seconds is not None for fleet in fleets),
    }
    return tuple(key for key, wanted in asked.items() if wanted)
