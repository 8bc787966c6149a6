"""Finds the config in each commit of the branch that the capacity loop has to run with."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from reconciler.config.loader import Purpose, parse_config
from reconciler.gitops.rendering.targets import find_targets
from reconciler.gitops.repository.followed import Followed, FollowedConfig, beside, config_of
from reconciler.gitops.repository.roots import cluster_in
from reconciler.model.bugs import bug_in_words
from reconciler.model.errors import (
    ConfigError,
    InputError,
    InvariantViolated,
    ReconcilerError,
    UsageError,
)
from reconciler.ports.repository import Commit, CommitId, Repository

VERSIONS_MAX: Final = 20
"""How many older versions of a config are tried when the one at the head has faults."""


class ConfigFollower:
    """Looks at each fetched commit; after a restart the last valid config is found again.

    Args:
        repository: The config repository; it must have been fetched right before `look` is called.
        patterns: Paths of sector configs, see `find_targets`.
        cluster: The capacity loop's; empty: that of the only config.
        heard: Called when the answer differs from the previous one.
    """

    def __init__(
        self,
        repository: Repository,
        patterns: Sequence[str],
        cluster: str,
        heard: Callable[[Followed], None],
    ) -> None:
        self._repository = repository
        self._patterns = tuple(patterns)
        self._cluster = cluster
        self._heard = heard
        self._tip: CommitId | None = None
        self._last: Followed | None = None
        self._named: dict[tuple[str, str], str] = {}
        """The cluster that a config names, by its path and the git blob id of its content."""

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
            found = Followed(config=None, trouble=str(error))
        except Exception as error:  # noqa: BLE001 - one config must not stop the others' rendering
            found = Followed(config=None, trouble=f"reading it fails: {bug_in_words(error)}")
        if found.config is None and self._last is not None:
            kept = self._last.config
            found = Followed(config=kept, trouble=found.trouble, problems=found.problems)
        if found != self._last:
            self._last = found
            self._heard(found)

    def _found(self, tip: Commit) -> Followed:
        files = {file.path: file.blob for file in self._repository.files(tip.id)}
        targets = find_targets(tuple(files), self._patterns)
        paths = [target.config_path for target in targets if target.config_path in files]
        named, unreadable = self._clusters_named(tip, {path: files[path] for path in paths})
        path, trouble = config_of(self._cluster, named)
        if not path and unreadable:
            trouble = f"{trouble}; {unreadable}"
        if not path:
            return Followed(config=None, trouble=trouble)
        try:
            return Followed(config=self._version(tip.id, path))
        except ConfigError as error:
            older = None if self._knows(path) else self._older(tip, path)
            return Followed(config=older, trouble=str(error), problems=error.problems)

    def _clusters_named(self, tip: Commit, paths: Mapping[str, str]) -> tuple[dict[str, str], str]:
        """Return the cluster that each config names, and why one of them cannot be read.

        One that cannot be read names no cluster, like one that is no YAML: it may be anybody's
        folder, and the second loop says what is wrong with it.

        Args:
            tip: The commit.
            paths: Blob ids by path.

        Raises:
            PortError: The repository did not answer.
        """
        names: dict[tuple[str, str], str] = {}
        named: dict[str, str] = {}
        unreadable = ""
        for path, blob in paths.items():
            try:
                known = self._named.get((path, blob))
                name = cluster_in(self._repository.read(tip.id, path)) if known is None else known
                named[path] = names[path, blob] = name
            except (InputError, UsageError) as error:
                named[path], unreadable = "", str(error)
            except ReconcilerError:
                raise
            except Exception as error:  # noqa: BLE001 - it is another cluster's config, as a rule
                named[path], unreadable = "", f"{path}: reading it fails: {bug_in_words(error)}"
        self._named = names
        return named, unreadable

    def _knows(self, path: str) -> bool:
        """Return whether a valid version was reported before; that one stays in force."""
        last = None if self._last is None else self._last.config
        return last is not None and last.path == path

    def _older(self, tip: Commit, path: str) -> FollowedConfig | None:
        """Return the newest valid version before the head, as far back as history was fetched."""
        for commit in self._repository.changes(tip.id, path, VERSIONS_MAX)[1:]:
            with suppress(ReconcilerError):
                return self._version(commit, path)
        return None

    def _version(self, commit: CommitId, path: str) -> FollowedConfig:
        """Return a config as a commit has it.

        Raises:
            ConfigError: It has faults.
        """
        content = self._repository.read(commit, path)
        name = self._cluster or None
        config = parse_config(content, name=path, cluster_name=name, purpose=Purpose.RUN)
        changed = self._repository.last_change(commit, [path], deep=True)
        there = {file.path for file in self._repository.files(commit)}
        names = beside(path, (config.descheduler.policy_file, config.catalogue))
        return FollowedConfig(
            path=path,
            commit=commit if changed is None else changed.id,
            content=content,
            files={
                name: self._repository.read(commit, file)
                for name, file in sorted(names.items())
                if file in there
            },
        )
