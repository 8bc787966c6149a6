"""Decides which files of a root module Terraform may read, before it reads any of them.

Terraform runs programs that files name: a provider's `credential_process`, a plugin in
`terraform.d`, a data source, a module. So a list in the repository is not trusted, as it can be
edited together with the files: code must be byte for byte what this program renders, for any region
and backend. Other files must be named by the pipeline (`--allow-file`).
"""

import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from os import DirEntry, scandir
from pathlib import Path
from typing import Any

from reconciler.config.resolve import further_regions_of, home_region_of
from reconciler.config.schema import SectorConfig
from reconciler.gitops.rendering.read_back import MAIN, VERSIONS, backend_named, region_named
from reconciler.gitops.rendering.render import TFVARS, rendered_code
from reconciler.gitops.rendering.root_module import S3Backend
from reconciler.gitops.rendering.targets import MANIFEST
from reconciler.gitops.terraform_plan.directory import LOCK, file_sha256
from reconciler.gitops.terraform_plan.finding import Finding, refusal
from reconciler.gitops.terraform_plan.import_blocks import (
    IMPORTS,
    gone_imports,
    has_import_blocks_only,
    variables_of,
)
from reconciler.model.errors import InputError, Refused, UsageError

_HARMLESS = frozenset({MANIFEST, ".gitignore", ".gitkeep", "README.md"})
"""Neither Terraform nor a provider reads these."""
_LOCAL_STATE = re.compile(
    r"(?:terraform|errored)\.tfstate(?:\.\d+)?(?:\.backup)?|\.terraform\.tfstate\.lock\.info"
)
_DATA = ".terraform"
"""What a person's own Terraform keeps; the pipeline keeps its own elsewhere and reads none of
it."""
_CODE_BYTES_MAX = 1 << 20
_TFVARS_BYTES_MAX = 64 << 20
_ENTRIES_MAX = 20_000
_FINDINGS_MAX = 50
_DEPTH_MAX = 16
_LOCKED_PROVIDER = re.compile(r'^\s*provider\s+"([^"\n]*)"', re.MULTILINE)
_PROVIDER = "registry.terraform.io/hashicorp/aws"


def allowed_files(named: Sequence[str]) -> dict[str, str]:
    """Return digests by path of files allowed next to rendered ones; empty: any content.

    Args:
        named: `PATH` or `PATH=SHA256`, relative to the root module.

    Raises:
        UsageError: It is no path inside the root module, or no SHA-256.
    """
    allowed: dict[str, str] = {}
    for each in named:
        path, _, digest = each.partition("=")
        parts = path.split("/")
        if not all(parts) or {".", ".."} & set(parts):
            raise UsageError("--allow-file", f"{path[:80]!r} is not a path inside DIR")
        if "=" in each and not re.fullmatch(r"[0-9a-f]{64}", digest):
            raise UsageError("--allow-file", f"{digest[:80]!r} is not a SHA-256 in hexadecimal")
        allowed[path] = digest
    return allowed


def assert_only_ours(
    module: Path, *, allowed: Mapping[str, str], without: Path | None = None
) -> None:
    """Raise Refused when the root module has a file that Terraform must not read."""
    found = foreign_files(module, allowed=allowed, without=without)
    if found:
        more = f"; {len(found) - 1} more files" if len(found) > 1 else ""
        raise Refused(found[0].where, f"{found[0].code}: {found[0].message}{more}")


def foreign_files(
    module: Path, *, allowed: Mapping[str, str], without: Path | None = None
) -> tuple[Finding, ...]:
    """Return every file that Terraform must not read, as refusals in a stable order.

    Args:
        module: The root module.
        allowed: See `allowed_files`.
        without: The plan directory, which may lie in the root module.

    Raises:
        InputError: A file or directory cannot be read.
    """
    try:
        ours = _Ours(module, allowed)
        entries = _entries(module, without.resolve() if without else None)
        found = [each for path, entry in entries for each in ours.against(path, entry)]
    except OSError as error:
        where = str(error.filename or module)
        raise InputError(where, f"cannot be read: {error.strerror}") from error
    if len(found) > _FINDINGS_MAX:
        rest = f"and {len(found) - _FINDINGS_MAX} more files that were not rendered"
        found = [*sorted(found)[:_FINDINGS_MAX], refusal("file/foreign", module.name, rest)]
    return tuple(sorted(found))


class _Ours:
    """What one root module may contain."""

    def __init__(self, module: Path, allowed: Mapping[str, str]) -> None:
        self._allowed = allowed
        self._folder = module.resolve().name
        self._values = _values_of(module)
        self._code = rendered_code(rendered_region(module), _backend_of(module))

    def against(self, path: str, entry: DirEntry[str]) -> Iterator[Finding]:
        """Yield the findings about one entry that is not a directory."""
        shown = _printable_name(path)
        mode = entry.stat(follow_symlinks=False).st_mode
        if not stat.S_ISREG(mode):
            kind = "a symbolic link" if stat.S_ISLNK(mode) else "no regular file"
            yield refusal("file/link", shown, f"is {kind}; Terraform is given plain files only")
        elif path in self._allowed:
            digest = self._allowed[path]
            if digest and file_sha256(Path(entry.path)) != digest:
                yield refusal("file/changed", shown, "has another SHA-256 than --allow-file names")
        elif path in self._code:
            yield from self._against_code(shown, entry, self._code[path])
        elif path == TFVARS:
            yield from _against_values(shown, entry)
        elif not self._is_harmless(path, entry):
            yield refusal(
                "file/foreign",
                shown,
                "was not rendered, and Terraform could run what it says; remove it, or name it"
                " with --allow-file",
            )
        elif path == IMPORTS and self._values is not None:
            text = _read(entry, _CODE_BYTES_MAX).decode(errors="replace")
            yield from gone_imports(text, self._values)

    def _against_code(self, shown: str, entry: DirEntry[str], ours: bytes) -> Iterator[Finding]:
        found = _read(entry, 2 * len(ours))
        if found == ours:
            return
        what = (
            "is not what this version renders; run reconciler render, or use the version that"
            " rendered it"
        )
        if _with_plain_ends(found) == ours:
            what = (
                "has CRLF line ends, which git makes where .gitattributes or core.autocrlf say so;"
                f" add the line `**/{_printable_name(self._folder)}/** -text` to the end of the"
                " repository's .gitattributes"
            )
        yield refusal("file/changed", shown, what)

    def _is_harmless(self, path: str, entry: DirEntry[str]) -> bool:
        if path == LOCK:
            text = _read(entry, _CODE_BYTES_MAX).decode(errors="replace")
            return set(_LOCKED_PROVIDER.findall(text)) <= {_PROVIDER}
        if path == IMPORTS:
            return has_import_blocks_only(_read(entry, _CODE_BYTES_MAX).decode(errors="replace"))
        state = path.rpartition("/")[2] if path.startswith("terraform.tfstate.d/") else path
        return path in _HARMLESS or _LOCAL_STATE.fullmatch(state) is not None


def _entries(module: Path, without: Path | None) -> Iterator[tuple[str, DirEntry[str]]]:
    """Yield all files below the root module with their paths; links are not followed."""
    pending = [("", module, 0)]
    count = 0
    while pending:
        prefix, folder, depth = pending.pop()
        with scandir(folder) as listed:
            for entry in listed:
                count += 1
                if count > _ENTRIES_MAX or depth > _DEPTH_MAX:
                    raise InputError(str(module), f"holds over {_ENTRIES_MAX} files", "clean it up")
                path = f"{prefix}{entry.name}"
                if not entry.is_dir(follow_symlinks=False):
                    yield path, entry
                elif path != _DATA and Path(entry.path).resolve() != without:
                    pending.append((f"{path}/", Path(entry.path), depth + 1))


def further_region(module: Path) -> str | None:
    """Return the Region of a root module in a directory `DIR-<region>`; None for any other."""
    region = rendered_region(module)
    return region if region and module.resolve().name.endswith(f"-{region}") else None


def home_directory(module: Path, config: SectorConfig) -> Path:
    """Return the directory of the home Region's root module, whichever Region's is given.

    Args:
        module: The directory of one of the config's root modules, rendered or not.
        config: A valid config.
    """
    name, rendered = module.resolve().name, rendered_region(module)
    further = {*further_regions_of(config), *filter(None, [further_region(module)])}
    for region in sorted(further - {home_region_of(config)}):
        if name.endswith(f"-{region}") and name != f"-{region}" and rendered in {None, region}:
            return module.with_name(name.removesuffix(f"-{region}"))
    return module


def rendered_region(module: Path) -> str | None:
    """Return the Region that a root module names for its provider; None when it names none."""
    return region_named(_text(module / MAIN))


def _backend_of(module: Path) -> S3Backend | None:
    """Return the backend that the root module seems to have; rendering it again verifies it."""
    return backend_named(_text(module / VERSIONS))


def _text(file: Path) -> str:
    if file.is_symlink() or not file.is_file() or file.stat().st_size > _CODE_BYTES_MAX:
        return ""
    return _with_plain_ends(file.read_bytes()).decode(errors="replace")


def _values_of(module: Path) -> Mapping[str, Any] | None:
    """Return the values of the root module's variables; None when it has no such file."""
    file = module / TFVARS
    if file.is_symlink() or not file.is_file() or file.stat().st_size > _TFVARS_BYTES_MAX:
        return None
    return variables_of(file.read_bytes())


def _with_plain_ends(content: bytes) -> bytes:
    """Return the content with the line ends of a render."""
    return content.replace(b"\r\n", b"\n")


def _against_values(shown: str, entry: DirEntry[str]) -> Iterator[Finding]:
    """Yield findings about the variables' values: they must be data like a render's."""
    keys = set(variables_of(_read(entry, _TFVARS_BYTES_MAX)))
    if keys != {"cluster_name", "fleets"}:
        yield refusal("file/changed", shown, "is not an object with cluster_name and fleets only")


def _read(entry: DirEntry[str], length_max: int) -> bytes:
    """Return the content; empty when it is longer than the limit."""
    if entry.stat(follow_symlinks=False).st_size > length_max:
        return b""
    return Path(entry.path).read_bytes()


def _printable_name(path: str) -> str:
    """Return a file's name in which no character can imitate another."""
    return ascii(path)[1:-1][:300]
