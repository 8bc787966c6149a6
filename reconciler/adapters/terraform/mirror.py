"""Decides where providers come from, so that machines without a network can plan.

Order: `RECONCILER_TERRAFORM_PLUGIN_DIR`; the mirrors that the machine's own Terraform settings
name; Terraform's usual directories for plugins; sub-directories of the usual roots; else the
registry. Only the AWS provider is installed from any of them. Never a directory of the checkout.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from reconciler.model.errors import ToolError

VARIABLE = "RECONCILER_TERRAFORM_PLUGIN_DIR"
PROVIDER = Path("registry.terraform.io", "hashicorp", "aws")
"""What a mirror must hold. Layout: https://developer.hashicorp.com/terraform/cli/config/config-file"""
ROOTS = (Path("/opt"), Path("/usr/share"), Path("/usr/local/share"))
_DIRECTORIES_MAX = 20_000
"""Bounds the search on machines with very full roots."""
_SETTINGS_BYTES_MAX = 1 << 20
_METHOD = re.compile(
    r'(?:filesystem_mirror\s*\{[^}]*?\bpath\s*=\s*"([^"\n]*)"'
    r'|network_mirror\s*\{[^}]*?\burl\s*=\s*"(https://[^"\n]*)")'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSources:
    """Where Terraform may install the AWS provider from; if neither is set, the registry."""

    directories: tuple[Path, ...] = ()
    urls: tuple[str, ...] = ()
    """URLs of network mirrors."""
    searched: bool = False
    """Whether they are optional: the registry is used for what they lack."""


REGISTRY = ProviderSources()


def provider_sources(
    environment: Mapping[str, str],
    is_inside: Callable[[Path], bool],
    roots: Iterable[Path] = ROOTS,
) -> ProviderSources:
    """Return where providers come from on this machine.

    Args:
        environment: Variables of the process.
        is_inside: Whether a path is in the checkout.
        roots: Directories whose sub-directories, two levels down, are searched.

    Raises:
        ToolError: The variable names a directory that is not a mirror.
    """
    named = environment.get(VARIABLE, "")
    if named:
        if not Path(named, PROVIDER.parts[0]).is_dir():
            raise ToolError(
                VARIABLE,
                f"{named} holds no {PROVIDER.parts[0]} directory",
                "name the directory above registry.terraform.io",
            )
        return ProviderSources(directories=(Path(named).resolve(),))
    settings = _own_settings(environment)
    if "provider_installation" in settings:
        found = _METHOD.findall(settings)
        mirrors = [Path(path).expanduser() for path, _ in found if path]
        return ProviderSources(
            directories=tuple(mirror for mirror in mirrors if not is_inside(mirror)),
            urls=tuple(url for _, url in found if url),
        )
    implied = (d for d in _implied(environment) if not is_inside(d))
    searched = islice(_children_and_grandchildren(roots), _DIRECTORIES_MAX)
    for directory in (*implied, *searched):
        if (directory / PROVIDER).is_dir():
            return ProviderSources(directories=(directory,), searched=True)
    return REGISTRY


def cli_config(sources: ProviderSources) -> str:
    """Return the CLI config with which Terraform installs only the AWS provider, from there."""
    only = f"    include = [{json.dumps(PROVIDER.as_posix())}]\n"
    methods = [
        *(("filesystem_mirror", "path", str(directory)) for directory in sources.directories),
        *(("network_mirror", "url", url) for url in sources.urls),
    ]
    blocks = [
        f"  {kind} {{\n    {key} = {json.dumps(value)}\n{only}  }}\n"
        for kind, key, value in methods
    ] or [f"  direct {{\n{only}  }}\n"]
    return f"disable_checkpoint = true\nprovider_installation {{\n{''.join(blocks)}}}\n"


def _own_settings(environment: Mapping[str, str]) -> str:
    """Return the machine's own CLI config, empty when no readable one exists."""
    named = environment.get("TF_CLI_CONFIG_FILE", "")
    file = Path(named) if named else _home(environment) / ".terraformrc"
    try:
        if file.stat().st_size > _SETTINGS_BYTES_MAX:
            return ""
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
    return re.sub(r"(?m)^\s*(?:#|//).*$", "", text)


def _implied(environment: Mapping[str, str]) -> Iterator[Path]:
    """Yield Terraform's implied local mirror directories on Linux, without that of the module."""
    home = _home(environment)
    yield home / ".terraform.d" / "plugins"
    data_home = environment.get("XDG_DATA_HOME") or str(home / ".local" / "share")
    data_dirs = environment.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share"
    for directory in (data_home, *data_dirs.split(":")):
        yield Path(directory) / "terraform" / "plugins"


def _home(environment: Mapping[str, str]) -> Path:
    return Path(environment.get("HOME") or "/")


def _children_and_grandchildren(roots: Iterable[Path]) -> Iterator[Path]:
    """Yield the roots' children, then their grandchildren, each level sorted."""
    level = list(roots)
    for _ in range(2):
        level = [child for directory in level for child in _children(directory)]
        yield from level


def _children(directory: Path) -> list[Path]:
    try:
        return sorted(child for child in directory.iterdir() if child.is_dir())
    except OSError:
        return []
