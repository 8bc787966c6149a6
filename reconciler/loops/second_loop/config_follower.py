"""Finds the config in each commit of the branch that the capacity loop has to run with."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from reconciler.config.catalogue import load_catalogue
from reconciler.config.loader import files_named
from reconciler.config.planning.settings import planner_settings
from reconciler.gitops.rendering.targets import find_targets
from reconciler.gitops.repository.followed import BranchConfig, FollowedConfig, beside, config_of
from reconciler.gitops.repository.followed_reading import read_followed
from reconciler.gitops.repository.roots import cluster_named
from reconciler.model.bugs import bug_in_words
from reconciler.model.errors import (
    ConfigError,
    InputError,
    InvariantViolated,
    NotFound,
    PortError,
    ReconcilerError,
    ToolError,
    UsageError,
)
from reconciler.ports.repository import Commit, CommitId, Repository

VERSIONS_MAX: Final = 20
"""How many older versions of a config are tried when the one at the head has faults."""
FAULTS: Final = (ConfigError, InputError, UsageError)
"""What a commit's config raises, however often it is read; others may pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Named:
    """The cluster that a config names."""

    cluster: str
    """Empty: it names none."""
    fault: str = ""
    """Why it cannot be read; the cluster is then that of its newest readable version."""


class ConfigFollower:
    """Looks at each fetched commit; after a restart the last valid config is found again.

    Args:
        repository: The config repository; it must have been fetched right before `look` is called.
        patterns: Paths of sector configs, see `find_targets`.
        cluster: The capacity loop's; empty: that of the only config.
        heard: Called when the answer differs from the previous one.
        own_catalogue: Whether the catalogue that a config names is used, and has to be valid.
    """

    def __init__(
        self,
        repository: Repository,
        patterns: Sequence[str],
        cluster: str,
        heard: Callable[[BranchConfig], None],
        *,
        own_catalogue: bool = True,
    ) -> None:
        self._repository = repository
        self._patterns = tuple(patterns)
        self._cluster = cluster
        self._heard = heard
        self._own_catalogue = own_catalogue
        self._tip: CommitId | None = None
        self._last: BranchConfig | None = None
        self._named: dict[tuple[str, str], _Named] = {}
        """What each config names, by its path and the git blob id of its content."""

    def look(self, tip: Commit) -> None:
        """Report the config of a commit, unless the same was reported before.

        A fault of this config, or a bug that it leads to, must not keep the configs of other
        clusters from being rendered, so it is reported and never raised.
        """
        if tip.id == self._tip:
            return
        try:
            found = self._found(tip)
            self._tip = tip.id
        except InvariantViolated:
            raise
        except ReconcilerError as error:
            found = BranchConfig(config=None, trouble=str(error))
        except Exception as error:  # noqa: BLE001 - one config must not stop the others' rendering
            found = BranchConfig(config=None, trouble=f"reading it fails: {bug_in_words(error)}")
        if found.config is None and self._last is not None:
            kept = self._last.config
            found = BranchConfig(config=kept, trouble=found.trouble, problems=found.problems)
        if found != self._last:
            self._last = found
            self._heard(found)

    def _found(self, tip: Commit) -> BranchConfig:
        files = {file.path: file.blob for file in self._repository.files(tip.id)}
        targets = find_targets(tuple(files), self._patterns)
        paths = [target.config_path for target in targets if target.config_path in files]
        blobs = {path: files[path] for path in paths}
        path, trouble = self._path(tip, blobs, deep=False)
        if not path:
            path, trouble = self._path(tip, blobs, deep=True)
        if not path:
            return BranchConfig(config=None, trouble=trouble)
        try:
            return BranchConfig(config=self._version(tip.id, path))
        except FAULTS as error:
            older = None if self._reported_valid(path) else self._older(tip, path)
            problems = error.problems if isinstance(error, ConfigError) else ()
            return BranchConfig(config=older, trouble=str(error), problems=problems)

    def _path(self, tip: Commit, blobs: Mapping[str, str], *, deep: bool) -> tuple[str, str]:
        """Return the path of this cluster's config, or an empty path and why it is not certain.

        Args:
            tip: The commit.
            blobs: Blob ids of all configs by path.
            deep: Whether older history is fetched for configs that cannot be read.

        Raises:
            PortError: The repository did not answer.
        """
        known, now = self._named, {}
        for path, blob in blobs.items():
            named = known.get((path, blob))
            if named is None or (deep and named.fault and not named.cluster):
                named = self._names(tip, path, deep=deep)
            now[path, blob] = named
        self._named = now
        found, trouble = config_of(self._cluster, {key[0]: now[key].cluster for key in now})
        faults = [named.fault for named in now.values() if named.fault]
        return found, f"{trouble}; {faults[-1]}" if trouble and faults else trouble

    def _names(self, tip: Commit, path: str, *, deep: bool) -> _Named:
        """Return the cluster that a config names, or if it cannot be read its newest readable one.

        Without such a version it may be anybody's. The second loop says what is wrong with it.

        Raises:
            PortError: The repository did not answer.
        """
        named = self._named_at(tip.id, path)
        if not named.fault:
            return named
        with suppress(UsageError):  # git allows paths that cannot be checked out
            for commit in self._repository.changes(tip.id, [path], VERSIONS_MAX, deep=deep):
                older = self._named_at(commit, path)
                if not older.fault:
                    return replace(older, fault=named.fault)
        return named

    def _named_at(self, commit: CommitId, path: str) -> _Named:
        """Return the cluster that a config names in one commit, or why it cannot be read there."""
        try:
            return _Named(cluster=cluster_named(self._repository.read(commit, path)))
        except ConfigError as error:
            return _Named(cluster="", fault=f"{path}: {error.problems[0].message}")
        except (InputError, UsageError, NotFound) as error:
            return _Named(cluster="", fault=str(error))
        except ReconcilerError:
            raise
        except Exception as error:  # noqa: BLE001 - it is another cluster's config, as a rule
            fault = f"{path}: reading it fails: {bug_in_words(error)}"
            return _Named(cluster="", fault=fault)

    def _reported_valid(self, path: str) -> bool:
        """Return whether a valid version was reported before; that one stays in force."""
        last = None if self._last is None else self._last.config
        return last is not None and last.path == path

    def _older(self, tip: Commit, path: str) -> FollowedConfig | None:
        """Return the newest valid version before the head; None: there is none.

        Raises:
            PortError: Older history was needed, and the repository did not answer.
        """
        repository, paths = self._repository, {path}
        for commit in repository.changes(tip.id, [path], VERSIONS_MAX):
            with suppress(*FAULTS, NotFound):
                paths |= set(beside(path, files_named(repository.read(commit, path))).values())
        for commit in repository.changes(tip.id, sorted(paths), VERSIONS_MAX, deep=True):
            with suppress(*FAULTS, NotFound):
                return self._version(commit, path)
        return None

    def _version(self, commit: CommitId, path: str) -> FollowedConfig:
        """Return a config as a commit has it.

        Raises:
            ConfigError: It or its policy file has faults.
            InputError: It or its catalogue cannot be read.
            UsageError: It names no cluster, or files that are not beside it.
        """
        content = self._repository.read(commit, path)
        there = {file.path for file in self._repository.files(commit)}
        found = FollowedConfig(
            path=path,
            commit=commit,
            content=content,
            files={
                name: self._repository.read(commit, file)
                for name, file in sorted(beside(path, files_named(content)).items())
                if file in there
            },
        )
        config, catalogue = read_followed(
            found,
            name=path,
            cluster_name=self._cluster or None,
            own_catalogue=self._own_catalogue,
        )
        planner_settings(config, load_catalogue() if catalogue is None else catalogue)
        # The name of the commit is for messages: a valid config does not wait for it.
        with suppress(PortError, ToolError):
            changed = self._repository.last_change(commit, [path], deep=True)
            return replace(found, commit=commit if changed is None else changed.id)
        return found
