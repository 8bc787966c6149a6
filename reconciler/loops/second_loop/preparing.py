"""What each config of the repository renders to, before anything is decided; one at a time."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from reconciler.gitops.rendering.read_back import MAIN, VERSIONS, region_named
from reconciler.gitops.rendering.render import TFVARS
from reconciler.gitops.rendering.targets import RenderTarget, directory_of, own_files
from reconciler.gitops.repository.commit_message import output_digest
from reconciler.gitops.repository.proposal import (
    Proposal,
    claims_of_render,
    manifest_paths,
    not_of_a_render,
    propose,
    written_by_renders,
)
from reconciler.gitops.repository.roots import cluster_in
from reconciler.gitops.repository.status import ClusterStatus
from reconciler.model.bugs import bug_in_words
from reconciler.model.errors import ConfigError, InputError, NotFound, ReconcilerError, UsageError
from reconciler.ports.repository import Commit, CommitId, Repository


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedConfig:
    """Holds what is known of one cluster before the decision about it."""

    target: RenderTarget
    seen: frozenset[tuple[str, str]] = frozenset()
    """Names and blob ids that the decision is based on."""
    blob: str = ""
    """The git blob id of the config's content."""
    proposal: Proposal | None = None
    """What it renders to; None: its status is final already, or these files are known to need no
    commit."""
    claims: frozenset[str] = frozenset()
    ended: ClusterStatus | None = None


class GitopsPreparing:
    """Renders one config after the other; what is known to need no commit is not rendered again.

    Args:
        repository: The config repository.
        configs: Paths or patterns inside the repository, see `find_targets`.
        cluster_name: The name for the only config, whatever it says; of several configs, for those
            that name no cluster.
    """

    def __init__(
        self, repository: Repository, configs: Sequence[str], cluster_name: str | None
    ) -> None:
        self._repository = repository
        self._configs = tuple(configs)
        self._cluster_name = cluster_name
        self._unchanged: dict[RenderTarget, PreparedConfig] = {}
        """By cluster: the files that need no commit, and their status."""

    def prepared(
        self, tip: Commit, target: RenderTarget, files: Mapping[str, str]
    ) -> PreparedConfig:
        """Return what one cluster's config renders to, or why nothing is rendered from it.

        Neither a fault of one config nor a bug that it leads to keeps the others from being
        rendered.

        Args:
            tip: The commit to render from.
            target: The cluster's config and directory.
            files: Blobs of everything in the commit, by path.

        Raises:
            PortError: The repository did not answer.
        """
        if target.config_path not in files:
            return PreparedConfig(
                target=target, ended=_status_of_missing(self._repository, tip.id, target)
            )
        seen = own_files(target, files)
        known = self._unchanged.get(target)
        if known is not None and known.seen == seen:
            return known
        try:
            proposal = self._propose(tip, target, files)
        except (ConfigError, InputError, UsageError) as error:
            return self.refused(tip, target, files, error)
        except ReconcilerError:
            raise
        except Exception as error:  # noqa: BLE001 - one team's config must not stop the others'
            what = f"rendering it fails: {bug_in_words(error)}"
            fault = InputError(target.config_path, what, "please report it")
            return self.refused(tip, target, files, fault)
        return PreparedConfig(
            target=target,
            seen=seen,
            blob=files[target.config_path],
            proposal=proposal,
            claims=proposal.claims,
        )

    def refused(
        self, tip: Commit, target: RenderTarget, files: Mapping[str, str], error: ReconcilerError
    ) -> PreparedConfig:
        """Return a config from which nothing is rendered.

        It describes what it was rendered to before, so that no copy takes that over meanwhile.

        Raises:
            PortError: The repository did not answer.
        """
        try:
            claims = self._claims_there(tip, target, files)
        except (InputError, UsageError):
            claims = frozenset()
        except ReconcilerError:
            raise
        except Exception:  # noqa: BLE001 - the bug that this config leads to is reported already
            claims = frozenset()
        return PreparedConfig(target=target, claims=claims, ended=invalid(target, error))

    def _claims_there(
        self, tip: Commit, target: RenderTarget, files: Mapping[str, str]
    ) -> frozenset[str]:
        config, claims = b"", frozenset[str]()
        if target.config_path in files:
            with suppress(InputError):  # one that is too large, say
                config = self._repository.read(tip.id, target.config_path)
        older = self._manifests(tip, target, files)
        ours = written_by_renders(target, older) & files.keys()
        for region in older:
            directory = directory_of(target.output_dir, region)
            contents = {
                name: self._repository.read(tip.id, f"{directory}/{name}")
                for name in (TFVARS, MAIN, VERSIONS)
                if f"{directory}/{name}" in ours
            }
            claims |= claims_of_render(directory, contents, config)
        return claims

    def needs_no_commit(self, prepared: PreparedConfig, status: ClusterStatus) -> None:
        """Note that these files hold what they render to; they are not rendered again."""
        self._unchanged[prepared.target] = replace(prepared, ended=status, proposal=None)

    def output_there(self, tip: Commit, prepared: PreparedConfig) -> str:
        """Return the digest of the files of older renders, as they are in a commit."""
        there = {path for path, _ in prepared.seen}
        manifests = self._manifests(tip, prepared.target, there)
        paths = written_by_renders(prepared.target, manifests) & there
        return output_digest({path: self._repository.read(tip.id, path) for path in paths})

    def _manifests(
        self, tip: Commit, target: RenderTarget, files: Collection[str]
    ) -> dict[str | None, bytes]:
        """Return the manifests of older renders, by Region."""
        return {
            region: self._repository.read(tip.id, path)
            for region, path in manifest_paths(target, files).items()
        }

    def _propose(self, tip: Commit, target: RenderTarget, files: Mapping[str, str]) -> Proposal:
        """Render one config; `cluster_name` is used for one config or for those without a name."""
        config = self._repository.read(tip.id, target.config_path)
        named = [str(PurePosixPath(path)) for path in self._configs]
        needed = named == [target.config_path] or not cluster_in(config)
        older = self._manifests(tip, target, files)
        main = f"{target.output_dir}/{MAIN}"
        ours = main in written_by_renders(target, older) and main in files
        text = self._repository.read(tip.id, main).decode(errors="replace") if ours else ""
        proposal = propose(
            target,
            config,
            old_manifests=older,
            rendered_for=region_named(text),
            cluster_name=self._cluster_name if needed else None,
        )
        for change in not_of_a_render(target, proposal, older, files):
            if self._repository.read(tip.id, change.path) != change.content:
                what = "exists and was not written by a render"
                raise UsageError(change.path, what, "move it away, or render elsewhere with --out")
        return proposal


def invalid(target: RenderTarget, error: ReconcilerError) -> ClusterStatus:
    """Return the status of an invalid config; other clusters are rendered all the same."""
    problems = error.problems if isinstance(error, ConfigError) else ()
    return ClusterStatus(target=target, state="invalid", detail=str(error), problems=problems)


def _status_of_missing(
    repository: Repository, commit: CommitId, target: RenderTarget
) -> ClusterStatus:
    """Return the status of a config that is not among the regular files of a commit, and why."""
    detail = "the branch has no such file"
    try:
        repository.read(commit, target.config_path)
    except InputError as error:
        detail = str(error)
    except NotFound:
        pass
    return ClusterStatus(target=target, state="missing", detail=detail)
