"""Access rules of the status server, from the config."""

from pathlib import Path

from reconciler.config.schema import SectorConfig
from reconciler.web.access import AccessRules
from reconciler.web.address import host_and_port


def access_of(config: SectorConfig) -> AccessRules:
    """Return the access rules that the config asks for; UsageError without a token."""
    host, _ = host_and_port(config.listen)
    rules = AccessRules(
        hosts=frozenset(name.lower() for name in (*config.listen_hosts, host) if name),
        token_file=Path(config.listen_token_file) if config.listen_token_file else None,
    )
    rules.check_token_file()
    return rules
