"""The config of a running program, from a file or a repository; the last valid one is kept."""

import hashlib
from collections.abc import Callable
from pathlib import Path

from reconciler.config.catalogue import FILE_MAX_BYTES, Catalogue, load_catalogue
from reconciler.config.environment import (
    Flags,
    apply_overrides,
    cluster_name_of,
    parse_with_overrides,
    stated_values,
)
from reconciler.config.loader import files_named, read_config_bytes
from reconciler.config.planning.settings import planner_settings
from reconciler.config.schema import SectorConfig
from reconciler.gitops.repository.followed import FollowedConfig
from reconciler.gitops.repository.followed_reading import read_followed
from reconciler.machine.plain_file import open_plain
from reconciler.model.errors import (
    ConfigError,
    InputError,
    ReconcilerError,
    UsageError,
    why_unreadable,
)
from reconciler.planner.settings import PlannerSettings

FIXED = (
    "kubeconfig",
    "kube_context",
    "listen",
    "listen_hosts",
    "listen_token_file",
    "verbosity",
    "notifications",
    "recording",
    "tracing",
    "leader_election",
)
"""Keys that a running program cannot follow."""


class ConfigSource:
    """Gives the config that is in force, with flags and environment variables overriding it.

    A file is read again when it, or a file that it names, has changed; what is no regular file,
    such as a pipe, is read once. Once a repository's config
    was offered, that one is followed and the file is not read any more. Only `offer` may be called
    from other threads.

    Args:
        origin: A file (`-` is standard input, which is read once), or a repository's config.
        flags: What the command line gave.
        home_region: Asked for a config without `regions`.

    Raises:
        ConfigError: The config has faults.
        UsageError: A flag or variable has a bad value, or no cluster is named.
    """

    def __init__(
        self, origin: str | FollowedConfig, flags: Flags, home_region: Callable[[], str | None]
    ) -> None:
        self._flags = flags
        self._home_region = home_region
        self._offered: FollowedConfig | None = None
        self.followed: FollowedConfig | None = None
        """The repository's config in force; None: a file is in force."""
        self._refused = ""
        """Digest of the repository's config that was refused last."""
        self._named: tuple[Path, ...] = ()
        """The files that the config file names, whether it is in force or refused."""
        self._named_by = ""
        """Digest of the config file that named them."""
        if isinstance(origin, FollowedConfig):
            self._file = self._digest = ""
            self.config, self.settings = self._load_followed(origin)
            self.followed = self._offered = origin
            return
        self._file = origin
        self._read_once = not Path(origin).is_file()
        content = self._read()
        self._digest = self._digest_of_files(content)
        self.config, self.settings = self._load(content)

    @property
    def path(self) -> str:
        """Return the name of the config in force in messages: a file, or a path and commit."""
        return self._file if self.followed is None else self.followed.shown

    @property
    def commit(self) -> str:
        """Return the commit of the repository's config in force; empty: a file is in force."""
        return "" if self.followed is None else self.followed.commit

    @property
    def offered(self) -> str:
        """Return the name in messages of the config that was read last."""
        return self._file if self._offered is None else self._offered.shown

    def offer(self, followed: FollowedConfig) -> None:
        """Have `refresh` apply a repository's config."""
        self._offered = followed

    def refresh(self) -> bool:
        """Apply the config that was offered, or the file when it or a file it names changed.

        Returns:
            Whether the config in force has changed, or has the same content in another commit.

        Raises:
            ReconcilerError: The new content cannot be used; the previous one stays in force. Raised
                once per content, except for passing causes such as a full disk.
        """
        offered = self._offered
        if offered is not None:
            return self._follow(offered)
        if self._read_once:
            return False
        content = self._read()
        digest = self._digest_of_files(content)
        if digest == self._digest:
            return False
        self._digest = digest
        self._take(*self._load(content))
        return True

    def fixed_changes(self, before: SectorConfig) -> tuple[str, ...]:
        """Return the keys that changed since `before` and take effect only after a restart."""
        return tuple(key for key in FIXED if getattr(before, key) != getattr(self.config, key))

    def _follow(self, offered: FollowedConfig) -> bool:
        now = self.followed
        if now is not None and offered.digest == now.digest:
            self.followed, self._refused = offered, ""
            return offered.shown != now.shown
        if offered.digest == self._refused:
            return False
        try:
            self._take(*self._load_followed(offered))
        except (ConfigError, InputError, UsageError):
            self._refused = offered.digest
            raise
        self.followed, self._refused = offered, ""
        return True

    def _take(self, config: SectorConfig, settings: PlannerSettings) -> None:
        if settings.cluster != self.settings.cluster:
            raise UsageError(
                self.offered,
                f"the cluster changed from {self.settings.cluster} to {settings.cluster}",
                "start the program again for another cluster",
            )
        self.config, self.settings = config, settings

    def _read(self) -> bytes | ConfigError:
        """Return the content of the file, for digest and config; or why there is none."""
        try:
            return read_config_bytes(self._file)
        except ConfigError as error:
            return error

    def _load(self, content: bytes | ConfigError) -> tuple[SectorConfig, PlannerSettings]:
        if isinstance(content, ConfigError):
            raise content
        is_stdin = self._file == "-"
        config = parse_with_overrides(
            content,
            self._flags,
            name="<stdin>" if is_stdin else self._file,
            directory=Path() if is_stdin else Path(self._file).parent,
        )
        return config, self._settings_of(config, load_catalogue(config.catalogue))

    def _load_followed(self, followed: FollowedConfig) -> tuple[SectorConfig, PlannerSettings]:
        """Read a repository's config; files that it names come from the same commit."""
        given, stated = stated_values(self._flags), stated_catalogue(self._flags)
        config, catalogue = read_followed(
            followed,
            name=followed.shown,
            cluster_name=cluster_name_of(given),
            own_catalogue=not stated,
        )
        config = apply_overrides(config, given)
        if catalogue is None:
            catalogue = load_catalogue(stated)
        return config, self._settings_of(config, catalogue)

    def _settings_of(self, config: SectorConfig, catalogue: Catalogue) -> PlannerSettings:
        if config.regions:
            return planner_settings(config, catalogue)
        home = self._home_region()
        if home is None:
            raise UsageError("regions", "no Regions are named", "give --regions or set AWS_REGION")
        return planner_settings(config, catalogue, home_region=home)

    def _digest_of_files(self, content: bytes | ConfigError) -> str:
        """Return a digest of the file and of what it names, whether or not it can be used."""
        if isinstance(content, ConfigError):
            own, self._named = str(content), ()
        else:
            own = hashlib.sha256(content).hexdigest()
            if own != self._named_by:
                self._named = self._files_named(content)
        self._named_by = own
        return "".join([own, *map(_digest_of, self._named)])

    def _files_named(self, content: bytes) -> tuple[Path, ...]:
        policies, catalogue = files_named(content)
        stated = stated_catalogue(self._flags)
        named = (policies, None if stated else catalogue)
        beside = tuple(Path(self._file).parent / path for path in named if path)
        return (*beside, Path(stated)) if stated else beside


def stated_catalogue(flags: Flags) -> str:
    """Return the catalogue that a flag or a variable names; empty without one."""
    given = stated_values(flags).items()
    return next((text for setting, (_, text) in given if setting.path == ("catalogue",)), "")


def _digest_of(path: Path) -> str:
    """Return a digest of the content; a missing file has one too."""
    try:
        with open_plain(path, links=True) as file:
            return hashlib.sha256(file.read(FILE_MAX_BYTES)).hexdigest()
    except (OSError, ValueError) as error:
        return why_unreadable(error)


def faults_of(error: ReconcilerError) -> list[str]:
    """Return every fault of a config, as lines for a log."""
    if isinstance(error, ConfigError):
        return [f"{p.line}:{p.column}: {p.code}: {p.message}" for p in error.problems]
    return [str(error)]
