"""The sector config of a running program: read again when the file changed, the last good kept."""

import hashlib
from collections.abc import Callable
from pathlib import Path

from reconciler.config.catalogue import load_catalogue
from reconciler.config.environment import Flags, load_with_overrides
from reconciler.config.loader import Purpose, read_config_bytes
from reconciler.config.schema import SectorConfig
from reconciler.config.settings import planner_settings
from reconciler.model.errors import ConfigError, ReconcilerError, UsageError
from reconciler.planner.settings import PlannerSettings

FIXED = ("kubeconfig", "listen", "verbosity", "notifications", "leader_election")
"""Keys that a running program cannot follow."""


class ConfigSource:
    """A config file with flags and environment over it.

    Args:
        path: The file; `-` is standard input, which is read once.
        flags: What the command line gave.
        home_region: Asked for a config without `regions`.

    Raises:
        ConfigError: The file has faults.
        UsageError: A flag or variable has a bad value, or no cluster is named.
    """

    def __init__(self, path: str, flags: Flags, home_region: Callable[[], str | None]) -> None:
        self.path = path
        self._flags = flags
        self._home_region = home_region
        digest = self._digest_of_file()
        self.config, self.settings = self._load()
        self._digest = digest + self._digest_of_policies()

    def refresh(self) -> bool:
        """Read the file again if its content changed since it was last looked at.

        Returns:
            Whether another config is in force now.

        Raises:
            ReconcilerError: The new content cannot be used; what was in force stays. Raised once
                per content.
        """
        digest = self._digest_of_file() + self._digest_of_policies()
        if digest == self._digest:
            return False
        self._digest = digest
        config, settings = self._load()
        if settings.cluster != self.settings.cluster:
            raise UsageError(
                self.path,
                f"the cluster changed from {self.settings.cluster} to {settings.cluster}",
                "start the program again for another cluster",
            )
        self.config, self.settings = config, settings
        return True

    def fixed_changes(self, before: SectorConfig) -> tuple[str, ...]:
        """Keys that changed since `before` and only take effect with a restart."""
        return tuple(key for key in FIXED if getattr(before, key) != getattr(self.config, key))

    def _load(self) -> tuple[SectorConfig, PlannerSettings]:
        config = load_with_overrides(self.path, self._flags, purpose=Purpose.RUN)
        if config.regions:
            return config, planner_settings(config, load_catalogue(config.catalogue))
        home = self._home_region()
        if home is None:
            raise UsageError("regions", "none are named", "give --regions or set AWS_REGION")
        catalogue = load_catalogue(config.catalogue)
        return config, planner_settings(config, catalogue, home_region=home)

    def _digest_of_file(self) -> str:
        return "" if self.path == "-" else _digest_of(Path(self.path))

    def _digest_of_policies(self) -> str:
        """Of the policy file that the config in force names."""
        named = self.config.descheduler.policy_file
        return _digest_of(Path(self.path).parent / named) if named and self.path != "-" else ""


def _digest_of(path: Path) -> str:
    """Of the content; a file that is not there has one too."""
    try:
        return hashlib.sha256(read_config_bytes(path)).hexdigest()
    except ConfigError as error:
        return str(error)


def faults_of(error: ReconcilerError) -> list[str]:
    """Every fault of a config, as lines for a log."""
    if isinstance(error, ConfigError):
        return [f"{p.line}:{p.column}: {p.code}: {p.message}" for p in error.problems]
    return [str(error)]
