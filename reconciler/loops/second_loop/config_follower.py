"""Finds the config in each commit of the branch that the capacity loop has to run with."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from reconciler.config.catalogue import load_catalogue
from reconciler.config.loader import files_named
from reconciler.config.planning.settings import planner_settings
from reconciler.gitops.rendering.targets import find_targets
from reconciler.gitops.repository.followed import (
    BranchConfig,
    FollowedConfig,
    beside,
    candidates,
    config_of,
    lost_sight,
)
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

    That is the one of the newest commit in which it is valid and the only one of its cluster.

    Args:
        repository: The config repository; it must have been fetched right before `look` is called.
        patterns: Paths of sector configs, see `find_targets`.
        cluster: The capacity loop's; empty: that of the only config.
        on_change: Called when the answer differs from the previous one.
        own_catalogue: Whether the catalogue that a config names is used, and has to be valid.
    """

    def __init__(
        self,
        repository: Repository,
        patterns: Sequence[str],
        cluster: str,
        on_change: Callable[[BranchConfig], None],
        *,
        own_catalogue: bool = True,
    ) -> None:
        self._repository = repository
        self._patterns = tuple(patterns)
        self._cluster = cluster
        self._on_change = on_change
        self._own_catalogue = own_catalogue
        self._tip: CommitId | None = None
        self._last: BranchConfig | None = None
        self._named: dict[tuple[str, str], _Named] = {}
        """What each config of the head names, by its path and the git blob id of its content."""
        self._never_there = False
        """Whether the history was searched for a config of this cluster, and has none."""

    def look(self, tip: Commit) -> None:
        """Report the config of a commit, unless the same was reported before.

        A fault of this config, or a bug that it leads to, must not keep the configs of other
        clusters from being rendered, so it is reported and never raised.
        """
        if tip.id == self._tip:
            return
        try:
            branch_config = self._found(tip)
            self._tip = tip.id
        except InvariantViolated:
            raise
        except ReconcilerError as error:
            branch_config = BranchConfig(config=None, trouble=str(error))
        except Exception as error:  # noqa: BLE001 - one config must not stop the others' rendering
            branch_config = BranchConfig(
                config=None, trouble=f"reading it fails: {bug_in_words(error)}"
            )
        if branch_config.config is None and self._last is not None:
            branch_config = replace(branch_config, config=self._last.config)
        if branch_config != self._last:
            self._last = branch_config
            self._on_change(branch_config)

    def _found(self, tip: Commit) -> BranchConfig:
        blobs = self._configs(tip.id)
        path, trouble = self._path(tip.id, blobs, deep=False)
        if not path:
            path, trouble = self._path(tip.id, blobs, deep=True)
        if not path:
            return self._out_of_sight(tip.id, trouble)
        try:
            return BranchConfig(config=self._version(tip.id, path))
        except FAULTS as error:
            older = None if self._has_reported_a_config() else self._older(tip.id, path)
            problems = error.problems if isinstance(error, ConfigError) else ()
            return BranchConfig(config=older, trouble=str(error), problems=problems)

    def _configs(self, commit: CommitId) -> dict[str, str]:
        """Return the git blob ids of all configs of a commit, by path."""
        files = {file.path: file.blob for file in self._repository.files(commit)}
        targets = find_targets(tuple(files), self._patterns)
        paths = [target.config_path for target in targets if target.config_path in files]
        return {path: files[path] for path in paths}

    def _out_of_sight(self, tip: CommitId, trouble: str) -> BranchConfig:
        """Return what stays in force where no config, or several, are this cluster's.

        A copied folder or a `git rm` by mistake must not change what a cluster runs with.

        Raises:
            PortError: Older history was needed, and the repository did not answer.
        """
        last = None if self._last is None else self._last.config
        kept = last or self._before(tip)
        if kept is None:
            return BranchConfig(config=None, trouble=trouble)
        named = {path: each.cluster for (path, _), each in self._named.items()}
        change = None if kept.path in named else self._repository.last_change(tip, [kept.path])
        removed_by = "" if change is None else change.short
        why, remedy = lost_sight(self._cluster, kept.path, named, removed_by)
        trouble = f"{trouble}; {why}" if why else trouble
        return BranchConfig(config=kept, trouble=trouble, remedy=remedy)

    def _before(self, tip: CommitId) -> FollowedConfig | None:
        """Return the newest valid config of the commits in which one was certain; None: no such.

        Without a cluster's name the only config of an older commit may be that of another one.

        Raises:
            PortError: Older history was needed, and the repository did not answer.
        """
        if not self._cluster or self._never_there:
            return None
        for commit, path in self._certain_before(tip):
            try:
                return self._version(commit, path)
            except FAULTS:
                return self._older(commit, path)
        self._never_there = True
        return None

    def _certain_before(self, tip: CommitId) -> Iterator[tuple[CommitId, str]]:
        """Yield older commits with one certain config of this cluster, and its path, newest first.

        A copy added a config, a new name changed one that is still there, and everything else that
        hides a config removed it.
        """
        named = {path: each for (path, _), each in self._named.items()}
        found = candidates(self._cluster, {path: each.cluster for path, each in named.items()})
        several = len(found) > 1
        configs = found if several else [p for p, each in named.items() if not each.fault]
        paths = sorted({file for path in configs for file in self._with_files(tip, path)})
        versions = self._repository.changes(tip, paths, VERSIONS_MAX, deep=True) if paths else ()
        for commit in versions:
            path = self._certain(commit)
            if path in named:
                yield commit, path
        removed = (
            each
            for each in self._repository.removals(tip)
            if any(t.config_path == each.path for t in find_targets((each.path,), self._patterns))
        )
        for removal in islice(removed, VERSIONS_MAX):
            path = self._certain(removal.before)
            if path and not self._certain(removal.commit):
                yield removal.before, path

    def _certain(self, commit: CommitId) -> str:
        """Return the path of this cluster's config in an older commit; empty: it is not certain."""
        with suppress(InputError):  # more files than are listed
            names = self._names_of(commit, self._configs(commit), deep=False)
            named = {path: each.cluster for (path, _), each in names.items()}
            return config_of(self._cluster, named)[0]
        return ""

    def _path(self, tip: CommitId, blobs: Mapping[str, str], *, deep: bool) -> tuple[str, str]:
        """Return the path of this cluster's config, or an empty path and why it is not certain.

        Args:
            tip: The commit.
            blobs: Blob ids of all configs by path.
            deep: Whether older history is fetched for configs that cannot be read.

        Raises:
            PortError: The repository did not answer.
        """
        self._named = now = self._names_of(tip, blobs, deep=deep)
        found, trouble = config_of(self._cluster, {key[0]: now[key].cluster for key in now})
        faults = [named.fault for named in now.values() if named.fault]
        return found, f"{trouble}; {faults[-1]}" if trouble and faults else trouble

    def _names_of(
        self, commit: CommitId, blobs: Mapping[str, str], *, deep: bool
    ) -> dict[tuple[str, str], _Named]:
        """Return what each config of a commit names; what the head has too is not read again."""
        now = {}
        for path, blob in blobs.items():
            named = self._named.get((path, blob))
            if named is None or (deep and named.fault and not named.cluster):
                named = self._names(commit, path, deep=deep)
            now[path, blob] = named
        return now

    def _names(self, tip: CommitId, path: str, *, deep: bool) -> _Named:
        """Return the cluster that a config names, or if it cannot be read its newest readable one.

        Without such a version it may be anybody's. The second loop says what is wrong with it.

        Raises:
            PortError: The repository did not answer.
        """
        named = self._named_at(tip, path)
        if not named.fault:
            return named
        with suppress(UsageError):  # git allows paths that cannot be checked out
            for commit in self._repository.changes(tip, [path], VERSIONS_MAX, deep=deep):
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

    def _has_reported_a_config(self) -> bool:
        """Return whether a valid config was reported before; that one stays in force."""
        return self._last is not None and self._last.config is not None

    def _older(self, tip: CommitId, path: str) -> FollowedConfig | None:
        """Return the newest valid version before the head; None: there is none.

        Raises:
            PortError: Older history was needed, and the repository did not answer.
        """
        repository, paths = self._repository, {path}
        for commit in repository.changes(tip, [path], VERSIONS_MAX):
            paths |= self._with_files(commit, path)
        for commit in repository.changes(tip, sorted(paths), VERSIONS_MAX, deep=True):
            with suppress(*FAULTS, NotFound):
                return self._version(commit, path)
        return None

    def _check_cluster(self, path: str, content: bytes) -> None:
        """Raise UsageError for a version that names another cluster: the path was another one's."""
        at_head = {each.cluster for (name, _), each in self._named.items() if name == path}
        wanted = self._cluster or next(iter(at_head), "")
        stated = cluster_named(content)
        if wanted and stated and stated != wanted:
            raise UsageError(path, f"another cluster is named: {stated!r}", f"let it name {wanted}")

    def _with_files(self, commit: CommitId, path: str) -> set[str]:
        """Return the paths of a config and of the files that it names in a commit."""
        with suppress(*FAULTS, NotFound):
            named = files_named(self._repository.read(commit, path))
            return {path, *beside(path, named).values()}
        return {path}

    def _version(self, commit: CommitId, path: str) -> FollowedConfig:
        """Return a config as a commit has it.

        Raises:
            ConfigError: It or its policy file has faults.
            InputError: It or its catalogue cannot be read.
            UsageError: It names no cluster, another one, or files that are not beside it.
        """
        content = self._repository.read(commit, path)
        self._check_cluster(path, content)
        there = {file.path for file in self._repository.files(commit)}
        followed_config = FollowedConfig(
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
            followed_config,
            name=path,
            cluster_name=self._cluster or None,
            own_catalogue=self._own_catalogue,
        )
        planner_settings(config, load_catalogue() if catalogue is None else catalogue)
        # The name of the commit is for messages: a valid config does not wait for it.
        with suppress(PortError, ToolError):
            changed = self._repository.last_change(commit, [path], deep=True)
            return replace(followed_config, commit=commit if changed is None else changed.id)
        return followed_config
