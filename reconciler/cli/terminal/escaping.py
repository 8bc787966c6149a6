"""Escapes untrusted text for terminals."""

import re
from typing import Final

_BYTE: Final = re.compile("[\udc80-\udcff]")
"""A byte of a file's name that is not UTF-8, as Python represents it."""


def plain(value: object) -> str:
    """Return the text without control sequences; line breaks stay."""
    return "".join(c if c.isprintable() or c == "\n" else "�" for c in by_bytes(str(value)))


def one_line(value: object) -> str:
    r"""Return the text on one line, with line breaks in it shown as `\n`."""
    return plain(value).replace("\n", "\\n")


def by_bytes(text: str) -> str:
    r"""Return the text as UTF-8 can encode it: other bytes of a name are shown as `\xff`."""
    shown = _BYTE.sub(lambda found: f"\\x{ord(found[0]) - 0xDC00:02x}", text)
    return shown.encode("utf-8", "backslashreplace").decode()
