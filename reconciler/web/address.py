"""`HOST:PORT`, as options of the command line give it."""

from reconciler.model.errors import UsageError
from reconciler.model.host_port import host_and_port


def web_address(listen: str, option: str = "--listen") -> tuple[str, int]:
    """Return the two parts of `HOST:PORT`.

    Args:
        listen: The text.
        option: The option of the command line, for errors.

    Raises:
        UsageError: The text is not of this form.
    """
    try:
        return host_and_port(listen)
    except ValueError as error:
        raise UsageError(option, str(error), "for example 127.0.0.1:9235") from None
