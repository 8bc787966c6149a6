"""Builds a fleet's name from its parts; this is the only place that does."""


def fleet_name(
    sector: str, size: str, zone: str | None = None, lifecycle: str | None = None
) -> str:
    """`<sector>-<size>[-<zone>][-<lifecycle>]`, with the optional parts that the config states."""
    return "-".join(filter(None, (sector, size, zone, lifecycle)))


def lifecycle_of(*, spot: bool) -> str:
    """Return `spot` or `on-demand`, as the key `lifecycle` and EC2's capacity types spell it."""
    return "spot" if spot else "on-demand"
