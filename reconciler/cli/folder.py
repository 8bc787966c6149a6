"""Options that name a folder to write to."""

from pathlib import Path

from reconciler.model.errors import UsageError


def written_folder(path: str | Path) -> Path:
    """The folder that `--out` names.

    Raises:
        UsageError: It names none: a script's variable that is not set is not the current folder.
    """
    if not str(path):
        raise UsageError("--out", "is empty", "name a folder; the current one is `.`")
    return Path(path)
