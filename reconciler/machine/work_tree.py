"""Which git work tree a folder lies in, and whether a link of a repository leads there."""

from pathlib import Path

from reconciler.model.errors import InputError


def work_tree(place: Path) -> Path | None:
    """Return the folder of the git work tree that holds a folder; None outside of git."""
    return next((each for each in (place, *place.parents) if (each / ".git").exists()), None)


def assert_no_link(directory: Path) -> None:
    """Refuse a folder that is reached through a link which a repository may have put there.

    Who may open a pull request would decide which folder of the machine is read and written. Links
    outside of any work tree, such as one to where all checkouts are, belong to the machine.

    Raises:
        InputError: The folder is a symbolic link, or a link in a git work tree is on the way to it.
    """
    link = _link(directory)
    if link is not None:
        raise InputError(
            str(link),
            "is a symbolic link, and a repository could have it lead anywhere",
            "remove it, or name the folder that it leads to",
        )


def _link(directory: Path) -> Path | None:
    """Return the first such link, as it is named; each part is looked at before it is followed."""
    place, named = Path(directory.anchor or Path.cwd()), Path(directory.anchor)
    parts = directory.parts[1:] if directory.anchor else directory.parts
    for index, part in enumerate(parts, start=1):
        place, named = place / part, named / part
        is_last = index == len(parts)
        if place.is_symlink() and (is_last or work_tree(place.parent) is not None):
            return named
        place = place.resolve()
    return None
