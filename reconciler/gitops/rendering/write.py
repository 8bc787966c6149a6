"""Updates a folder to a rendered root module, changing only files of a render."""

import glob
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from reconciler.config.rules.names import label_value_fault
from reconciler.gitops.rendering.render import TFVARS, RenderedFile, manifest
from reconciler.gitops.rendering.targets import MANIFEST, rendered_regions
from reconciler.machine.plain_file import is_special_file
from reconciler.machine.whole_file import put_whole
from reconciler.machine.work_tree import assert_no_link
from reconciler.model.errors import ReconcilerError, UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenChanges:
    """Lists what a write changed in its folder; paths are relative to it, sorted."""

    created: tuple[str, ...]
    updated: tuple[str, ...]
    removed: tuple[str, ...]
    unchanged: int
    """How many files were already correct."""


def write_rendered(files: Iterable[RenderedFile], directory: Path) -> WrittenChanges:
    """Make the folder hold these files; those of an older render are removed, others stay.

    Each file is replaced atomically. The manifest names old and new files until all are in place,
    so the next run completes an interrupted one.

    Raises:
        InputError: A link of the repository leads to the folder.
        UsageError: The folder is a file, or a file of the same name is not of a render.
        ReconcilerError: A file cannot be read, written or removed.
    """
    contents = {file.path: file.content for file in files}
    try:
        assert_no_link(directory)
        return _write(contents, directory)
    except OSError as error:
        where = str(error.filename or directory)
        raise ReconcilerError(where, f"cannot be written: {error.strerror}") from error


def rendered_cluster(directory: Path) -> str | None:
    """Return the cluster that the folder was rendered for; None when there is no render."""
    if is_special_file(directory / TFVARS):
        return None
    try:
        name = json.loads((directory / TFVARS).read_text(encoding="utf-8"))["cluster_name"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return name if isinstance(name, str) and label_value_fault(name) is None else None


def regions_beside(directory: Path) -> tuple[str, ...]:
    """Return the further Regions that were rendered next to the folder of the home Region."""
    beside = directory.resolve()
    rendered = [
        f"{folder.name}/{MANIFEST}"
        for folder in beside.parent.glob(f"{glob.escape(beside.name)}-*")
        if (folder / MANIFEST).is_file()
    ]
    return rendered_regions(beside.name, rendered)


def _write(contents: dict[str, bytes], directory: Path) -> WrittenChanges:
    """Check first, then write, then remove what is no longer rendered."""
    if directory.exists() and not directory.is_dir():
        raise UsageError(str(directory), "is a file", "name a folder to render into")
    directory.mkdir(parents=True, exist_ok=True)
    older = _older_render(directory)
    present = {path: _present(directory, path) for path in contents}
    _refuse_foreign(contents, present, older, directory)
    changed = [path for path in sorted(contents) if present[path] != contents[path]]
    gone = sorted(path for path in older - set(contents) if _is_left(directory, path))
    if changed or gone:
        _replace(directory / MANIFEST, manifest(sorted(older | set(contents))))
    for path in changed:
        if path != MANIFEST:
            _replace(directory / path, contents[path])
    for path in gone:
        _remove(directory, path)
    if changed or gone:
        _replace(directory / MANIFEST, contents[MANIFEST])
    return WrittenChanges(
        created=tuple(path for path in changed if present[path] is None),
        updated=tuple(path for path in changed if present[path] is not None),
        removed=tuple(gone),
        unchanged=len(contents) - len(changed),
    )


def _older_render(directory: Path) -> set[str]:
    """Return paths that the last render wrote here; none when it left no manifest."""
    path = directory / MANIFEST
    _refuse_odd(path)
    try:
        listed = json.loads(path.read_bytes())["files"]
    except FileNotFoundError:
        return set()
    except (ValueError, KeyError, TypeError, RecursionError):
        raise UsageError(
            str(path), "is not the manifest of a render", "remove it to render afresh"
        ) from None
    if not isinstance(listed, list) or not all(_is_inside(entry) for entry in listed):
        raise UsageError(
            str(path), "names files outside of its folder", "remove it to render afresh"
        )
    return set(listed)


def _is_inside(path: object) -> bool:
    """Return whether this is a plain relative path inside its folder."""
    if not isinstance(path, str) or not path.isprintable():
        return False
    parts = PurePosixPath(path)
    return bool(parts.parts) and not parts.is_absolute() and ".." not in parts.parts


def _present(directory: Path, path: str) -> bytes | None:
    """Return what is at this path now; None when nothing is."""
    target = directory / path
    if not target.parent.resolve().is_relative_to(directory.resolve()):
        raise UsageError(str(target), "leads out of the folder through a link", "remove the link")
    if target.is_dir() and not target.is_symlink():
        raise UsageError(str(target), "is a folder where a file is rendered", "move it away")
    if target.is_symlink():
        return b""
    _refuse_odd(target)
    return target.read_bytes() if target.exists() else None


def _refuse_odd(path: Path) -> None:
    """Raise for a pipe, a socket or a device: reading one may never end."""
    if is_special_file(path):
        what = "is not a plain file, and one is rendered there"
        raise UsageError(str(path), what, "move it away")


def _refuse_foreign(
    contents: dict[str, bytes],
    present: dict[str, bytes | None],
    older: set[str],
    directory: Path,
) -> None:
    """Raise for a file that a render would overwrite but did not write."""
    for path in sorted(contents):
        if present[path] not in (None, contents[path]) and path not in older | {MANIFEST}:
            raise UsageError(
                str(directory / path),
                "exists and was not written by a render",
                "move it away or choose another folder",
            )


def _is_left(directory: Path, path: str) -> bool:
    """Return whether a file or a link, even a dangling one, is there and not behind a link out."""
    target = directory / path
    inside = target.parent.resolve().is_relative_to(directory.resolve())
    return inside and (target.is_symlink() or target.is_file())


def _replace(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with put_whole(path) as partial:
        partial.write_bytes(content)


def _remove(directory: Path, path: str) -> None:
    """Remove a file and the folders that it leaves empty."""
    (directory / path).unlink()
    for parent in PurePosixPath(path).parents[:-1]:
        folder = directory / parent
        if any(folder.iterdir()):
            break
        folder.rmdir()
