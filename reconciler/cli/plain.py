"""Text of strangers for a terminal: names, messages and paths come from whoever may make them."""

import re
from typing import Final

_BYTE: Final = re.compile("[\udc80-\udcff]")
"""A byte of a file's name that is no UTF-8, as Python holds it."""


def plain(value: object) -> str:
    """A text without what would steer a terminal; its lines stay."""
    return "".join(c if c.isprintable() or c == "\n" else "�" for c in by_bytes(str(value)))


def one_line(value: object) -> str:
    r"""The same on one line: a newline in a name, shown as `\n`, begins no line of its own."""
    return plain(value).replace("\n", "\\n")


def by_bytes(text: str) -> str:
    r"""The text as UTF-8 can hold it: what a name has of other bytes is shown as `\xff`."""
    shown = _BYTE.sub(lambda found: f"\\x{ord(found[0]) - 0xDC00:02x}", text)
    return shown.encode("utf-8", "backslashreplace").decode()
