"""`HOST:PORT`, as `listen` has it."""

_PORT_MAX = 65_535


def host_and_port(text: str) -> tuple[str, int]:
    """The two parts of `HOST:PORT`; the host may be empty, and in brackets.

    Raises:
        ValueError: There are no such two parts; its words say why and are fit for messages.
    """
    if "@" in text:  # not repeated: what stands before it is a secret as a rule
        raise ValueError("carries a name or password")
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    digits = colon and port.isascii() and port.isdigit() and len(port) <= len(str(_PORT_MAX))
    if not (digits and int(port) <= _PORT_MAX):
        raise ValueError(f"{text!r} is not a valid HOST:PORT")
    return host, int(port)
