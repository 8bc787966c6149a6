"""Which entries of a tree or an index count as files."""

REGULAR_MODES = frozenset({"100644", "100755"})
"""As git writes them: no links, no submodules."""
LINK_MODE = "120000"
"""A symbolic link."""


def is_text(path: str) -> bool:
    """Whether git's name of a file is UTF-8; others could be neither rendered for nor shown."""
    return not any("\ud800" <= character <= "\udfff" for character in path)
