"""Parses `HOST:PORT`, the form of `listen`."""

_PORT_MAX = 65_535


def host_and_port(text: str) -> tuple[str, int]:
    """Return the two parts of `HOST:PORT`; the host may be empty, or in brackets.

    Raises:
        ValueError: The text is not of this form; the message says why.
    """
    if "@" in text:  # the text is not quoted: what precedes the port may be a secret
        raise ValueError("carries a name or password")
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    digits = colon and port.isascii() and port.isdigit() and len(port) <= len(str(_PORT_MAX))
    if "/" in host or not (digits and int(port) <= _PORT_MAX):
        raise ValueError(f"{text!r} is not a valid HOST:PORT")
    return host, int(port)
