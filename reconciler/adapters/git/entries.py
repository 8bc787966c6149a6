"""Which entries of a tree or an index count as files."""

REGULAR_MODES = frozenset({"100644", "100755"})
"""The modes of regular files, as git writes them: no links, no submodules."""
LINK_MODE = "120000"
"""A symbolic link."""


def is_text(path: str) -> bool:
    """Return whether git's name of a file is UTF-8; others can be neither rendered nor shown."""
    return not any("\ud800" <= character <= "\udfff" for character in path)
