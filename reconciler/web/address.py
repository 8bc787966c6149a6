"""`HOST:PORT`, as `listen` has it."""

from reconciler.model.errors import UsageError


def host_and_port(listen: str, option: str = "--listen") -> tuple[str, int]:
    """The two parts of `HOST:PORT`.

    Args:
        listen: The text.
        option: Which option of the command line gives it, for errors.

    Raises:
        UsageError: There are no such two parts.
    """
    if "@" in listen:  # not repeated: what stands before it is a secret as a rule
        raise UsageError(option, "carries a name or password", "for example 127.0.0.1:9235")
    host, colon, port = listen.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not (colon and port.isascii() and port.isdigit() and int(port) <= 65_535):
        raise UsageError(option, f"{listen!r} is no HOST:PORT", "for example 127.0.0.1:9235")
    return host, int(port)
