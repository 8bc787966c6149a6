"""Text of strangers for a terminal: names, messages and paths come from whoever may make them."""


def plain(value: object) -> str:
    """A text without what would steer a terminal; its lines stay."""
    return "".join(c if c.isprintable() or c == "\n" else "�" for c in str(value))
