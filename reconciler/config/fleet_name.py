"""How a fleet is named: the one place that builds the name from its parts."""


def fleet_name(
    sector: str, size: str, zone: str | None = None, lifecycle: str | None = None
) -> str:
    """`<sector>-<size>[-<zone>][-<lifecycle>]`, with the optional parts that the config states."""
    return "-".join(filter(None, (sector, size, zone, lifecycle)))


def lifecycle_of(*, spot: bool) -> str:
    """`spot` or `on-demand`, as the key `lifecycle` and EC2's capacity types spell it."""
    return "spot" if spot else "on-demand"
