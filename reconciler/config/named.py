"""Finds the sector configs that a command line names: files, standard input, directories."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from reconciler.config.faults import SYNTAX
from reconciler.config.loader import DEFAULT_FILE
from reconciler.machine.plain_file import is_special_file
from reconciler.model.errors import Problem, why_unreadable


def configs_in(names: Iterable[str]) -> Iterator[tuple[str, Problem | None]]:
    """Yield each named config once, with the reason when a directory has none.

    A directory stands for every `sectors.yaml` in it and below it, sorted by path. Folders whose
    name begins with a dot are left out, and links to folders are not followed. A file may have any
    name.
    """
    seen = set()
    for name in names:
        for path, problem in _in_directory(name) if _is_directory(name) else [(name, None)]:
            place = path if path == "-" else str(Path(path).absolute())
            if place not in seen:
                seen.add(place)
                yield path, problem


def _is_directory(name: str) -> bool:
    """Return whether it is a directory; if unknown, reading it as a file reports why."""
    try:
        return name != "-" and Path(name).is_dir()
    except OSError:
        return False


def _in_directory(directory: str) -> Iterator[tuple[str, Problem | None]]:
    unreadable: list[OSError] = []
    found = []
    for folder, below, files in os.walk(directory, onerror=unreadable.append):
        below[:] = sorted(each for each in below if not each.startswith("."))
        if DEFAULT_FILE in files:
            found.append(str(Path(folder, DEFAULT_FILE)))
    for path in sorted(found):
        yield (
            path,
            _problem("is not a plain file; name it to read it")
            if is_special_file(Path(path))
            else None,
        )
    for error in unreadable:
        yield str(error.filename), _problem(why_unreadable(error))
    if not found and not unreadable:
        yield (
            directory,
            _problem(f"is a directory with no {DEFAULT_FILE} in it or below; name the file"),
        )


def _problem(message: str) -> Problem:
    """Return a problem without a line."""
    return Problem(line=0, column=0, path="", code=SYNTAX, message=message)
