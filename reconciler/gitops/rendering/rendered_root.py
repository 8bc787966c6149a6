"""Checks whether a folder has a rendered root module, and finds one near it otherwise."""

from collections.abc import Collection, Iterator
from pathlib import Path

from reconciler.gitops.rendering.render import TFVARS
from reconciler.gitops.rendering.targets import DEFAULT_OUTPUT, MANIFEST
from reconciler.machine.work_tree import assert_no_link
from reconciler.model.errors import InputError

CONFIG = "sectors.yaml"
"""Next to or above a rendered root, unless it has another name."""
_DEPTH_MAX = 2
"""How many folders deep a root is searched for below the named folder: `clusters/a/terraform` in
`clusters`."""
_SHOWN_MAX = 3


def assert_rendered_root(folder: Path, *, allowed: Collection[str] = ()) -> None:
    """Refuse a folder without a rendered root, before Terraform is started there.

    A root that lost a file still counts: the guard or Terraform reports what is missing.

    Args:
        folder: The folder that a pipeline was given as a root module.
        allowed: Files that the pipeline allows next to rendered ones, relative to the folder. A
            root that has one of them is the pipeline's own.

    Raises:
        InputError: It has neither the values nor the manifest of a render, is a file, does not
            exist, or a link of the repository leads there.
    """
    assert_no_link(folder)
    if not folder.exists():
        raise InputError(str(folder), "no such directory", _remedy(folder))
    if not folder.is_dir():
        raise InputError(str(folder), "is a file, and no folder", "name the folder of a root")
    if not any((folder / name).exists() for name in (TFVARS, MANIFEST, *allowed)):
        what = f"holds no rendered root module: neither {TFVARS} nor {MANIFEST} is in it"
        raise InputError(str(folder), what, _remedy(folder))


def _remedy(folder: Path) -> str:
    """Return the folder that was probably meant, else the command that renders one."""
    found = sorted(_roots_below(folder, _DEPTH_MAX))
    if found:
        more = f" or {len(found) - _SHOWN_MAX} more" if len(found) > _SHOWN_MAX else ""
        return f"below it there is: --dir {', --dir '.join(found[:_SHOWN_MAX])}{more}"
    for config, out in (
        (folder / CONFIG, folder / DEFAULT_OUTPUT),
        (folder.parent / CONFIG, folder),
    ):
        if config.is_file():
            return f"reconciler render {config} --out {out} writes it"
    return (
        f"name the folder that `reconciler render {CONFIG} --out DIR` wrote; where the second loop"
        " renders, it is there after the loop's first commit: git pull"
    )


def _roots_below(folder: Path, depth: int) -> Iterator[str]:
    """Yield folders below with the values of a render; unreadable folders have none."""
    try:
        inner = [each for each in folder.iterdir() if each.is_dir() and not each.is_symlink()]
    except OSError:
        return
    for each in inner:
        if (each / TFVARS).is_file():
            yield str(each)
        elif depth > 1 and not each.name.startswith("."):
            yield from _roots_below(each, depth - 1)
