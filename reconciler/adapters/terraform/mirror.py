"""Finds a local provider mirror, so that machines without a network can plan.

Order: `RECONCILER_TERRAFORM_PLUGIN_DIR`; Terraform's own settings and implied mirrors (left to
Terraform); sub-directories of the usual roots; else the network.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path

from reconciler.model.errors import ToolError

VARIABLE = "RECONCILER_TERRAFORM_PLUGIN_DIR"
PROVIDER = Path("registry.terraform.io", "hashicorp", "aws")
"""What a mirror must hold. Layout: https://developer.hashicorp.com/terraform/cli/config/config-file"""
ROOTS = (Path("/opt"), Path("/usr/share"), Path("/usr/local/share"))
_DIRECTORIES_MAX = 20_000
"""Bounds the search on machines with very full roots."""


def plugin_directory(
    environment: Mapping[str, str], module: Path, roots: Iterable[Path] = ROOTS
) -> Path | None:
    """The directory for `terraform init -plugin-dir`, None to leave the choice to Terraform.

    Args:
        environment: Variables of the process.
        module: The root module's directory.
        roots: Directories whose sub-directories, two levels down, are searched.

    Raises:
        ToolError: The variable names a directory that is no mirror.
    """
    named = environment.get(VARIABLE, "")
    if named:
        if not Path(named, PROVIDER.parts[0]).is_dir():
            raise ToolError(
                VARIABLE,
                f"{named} holds no {PROVIDER.parts[0]} directory",
                "name the directory above registry.terraform.io",
            )
        return Path(named).resolve()
    if _has_own_settings(environment) or any(
        (mirror / PROVIDER).is_dir() for mirror in _implied(environment, module)
    ):
        return None
    found = (d for d in islice(_below(roots), _DIRECTORIES_MAX) if (d / PROVIDER).is_dir())
    return next(found, None)


def _has_own_settings(environment: Mapping[str, str]) -> bool:
    """Whether the user configured the installation of providers already."""
    named = environment.get("TF_CLI_CONFIG_FILE", "")
    file = Path(named) if named else _home(environment) / ".terraformrc"
    try:
        return "provider_installation" in file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False


def _implied(environment: Mapping[str, str], module: Path) -> Iterator[Path]:
    """Terraform's implied local mirror directories on Linux."""
    home = _home(environment)
    yield module / "terraform.d" / "plugins"
    yield home / ".terraform.d" / "plugins"
    data_home = environment.get("XDG_DATA_HOME") or str(home / ".local" / "share")
    data_dirs = environment.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share"
    for directory in (data_home, *data_dirs.split(":")):
        yield Path(directory) / "terraform" / "plugins"


def _home(environment: Mapping[str, str]) -> Path:
    return Path(environment.get("HOME") or "/")


def _below(roots: Iterable[Path]) -> Iterator[Path]:
    """The roots' children, then their grandchildren, each level sorted."""
    level = list(roots)
    for _ in range(2):
        level = [child for directory in level for child in _children(directory)]
        yield from level


def _children(directory: Path) -> list[Path]:
    try:
        return sorted(child for child in directory.iterdir() if child.is_dir())
    except OSError:
        return []
