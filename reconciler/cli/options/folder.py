"""Options that name a folder to write to."""

from pathlib import Path

from reconciler.model.errors import UsageError


def written_folder(path: str | Path) -> Path:
    """Return the folder that `--out` names.

    Raises:
        UsageError: The name is empty: an unset variable of a script must not mean the current
            folder.
    """
    if not str(path):
        raise UsageError("--out", "is empty", "name a folder; the current one is `.`")
    return Path(path)
