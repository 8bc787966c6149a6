"""Puts untrusted text into Markdown so that it stays text."""

_LENGTH_MAX = 300


def code(text: str, length_max: int = _LENGTH_MAX) -> str:
    """Return untrusted text as inline code on one line; empty without a visible character.

    In inline code forges find no mention, link, reference, image, emoji or HTML. Escapes do not
    achieve that, as forges search the rendered text for `@name`, `www.` and `GH-2`. Backticks,
    which would end the code, and bars, which would end a table's cell, are replaced.
    """
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    line = line.replace("`", "'").replace("|", "¦")
    if len(line) > length_max:
        line = line[: length_max - 1] + "…"
    return f"`{line}`" if line else ""
