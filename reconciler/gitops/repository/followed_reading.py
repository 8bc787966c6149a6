"""Reads a repository's config together with the files that it names, as its commit has them."""

from pathlib import Path, PurePosixPath

from reconciler.config.catalogue import Catalogue, load_catalogue
from reconciler.config.loader import Purpose, files_named, parse_config
from reconciler.config.schema import SectorConfig
from reconciler.gitops.repository.followed import FollowedConfig, is_inside
from reconciler.machine.private_folder import PrivateFolder
from reconciler.model.errors import InputError, ReconcilerError, UsageError


def read_followed(
    followed: FollowedConfig, *, name: str, cluster_name: str | None, own_catalogue: bool
) -> tuple[SectorConfig, Catalogue | None]:
    """Return a config with its policies, and its catalogue; a commit names no file of this machine.

    Args:
        followed: The config and the files that it names.
        name: Its name in messages.
        cluster_name: Name given elsewhere (`--cluster-name`); it overrides the config's.
        own_catalogue: Whether the catalogue that it names is used; if not, None is returned for it.

    Raises:
        ConfigError: The config or its policy file has faults.
        InputError: Its catalogue cannot be read.
        UsageError: It names a file that is not of its commit, or the cluster's name is invalid.
        ReconcilerError: There is no room in the temporary directory.
    """
    policies, _ = files_named(followed.content)
    if policies and not is_inside(policies):
        parse_config(followed.content, name=name, cluster_name=cluster_name, purpose=Purpose.RUN)
        raise UsageError(
            name, f"descheduler.policy_file {policies!r} is not in the folder of the config"
        )
    try:
        with PrivateFolder("config") as directory:
            for path, content in followed.files.items():
                (directory / path).parent.mkdir(parents=True, exist_ok=True)
                (directory / path).write_bytes(content)
            config = parse_config(
                followed.content,
                name=name,
                cluster_name=cluster_name,
                directory=directory,
                purpose=Purpose.RUN,
            )
            catalogue = _catalogue(config, followed, name, directory) if own_catalogue else None
            return config, catalogue
    except OSError as error:
        what = f"cannot be written: {error.strerror}"
        raise ReconcilerError("the temporary directory", what, "free the disk") from error


def _catalogue(
    config: SectorConfig, followed: FollowedConfig, name: str, directory: Path
) -> Catalogue:
    named = config.catalogue
    if named is None:
        return load_catalogue()
    if named not in followed.files:
        raise UsageError(name, f"catalogue {named!r} is not in the folder of the config")
    try:
        return load_catalogue(str(directory / named))
    except InputError as error:
        where = PurePosixPath(followed.path).parent / named  # the folder here is a temporary one
        raise InputError(str(where), error.what, error.hint) from error
