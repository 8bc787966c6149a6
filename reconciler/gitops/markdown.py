"""Puts text from outside into Markdown so that it stays text."""

_LENGTH_MAX = 300


def code(text: str, length_max: int = _LENGTH_MAX) -> str:
    """Text from outside as inline code on one line, empty for a text without a visible character.

    Forges find no mention, link, reference, image, emoji or HTML in inline code.
    Escapes do not achieve that: forges look for `@name`, `www.` and `GH-2` in what was rendered.
    Backticks, which would end the code, and bars, which would end a table's cell, are replaced.
    """
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    line = line.replace("`", "'").replace("|", "¦")
    if len(line) > length_max:
        line = line[: length_max - 1] + "…"
    return f"`{line}`" if line else ""
