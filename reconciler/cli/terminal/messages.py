"""Writes errors and warnings on stderr, without secrets and without control sequences."""

import os
import sys
import traceback
from contextlib import suppress

from reconciler.cli.terminal.escaping import plain
from reconciler.model.errors import ReconcilerError
from reconciler.telemetry.scrubbing import scrub, secrets_of


def tell(kind: str, *parts: object, hint: str = "") -> None:
    """Write one line, `KIND: PART: PART (HINT)`.

    Args:
        kind: `error` or `warning`.
        parts: Place and message. Each is searched for secrets separately: the name of a variable
            with a token, before a colon, would mask the message after it.
        hint: What to do about it.
    """
    line = ": ".join([kind, *(without_secrets(str(part)) for part in parts)])
    if hint:
        line += f" ({without_secrets(hint)})"
    _write(" ".join(line.split()) + "\n")


def tell_error(error: ReconcilerError) -> None:
    """Write an error of this program as its line."""
    tell("error", error.where, error.what, hint=error.hint)


def tell_traceback() -> None:
    """Write the traceback of the exception that is being handled."""
    _write(without_secrets(traceback.format_exc()))


def without_secrets(text: str) -> str:
    """Return a text with what is, or looks like, a secret masked."""
    return scrub(text, secrets_of(os.environ))  # noqa: TID251 - masked, not read


def _write(text: str) -> None:
    encoding = sys.stderr.encoding or "utf-8"
    with suppress(OSError):
        sys.stderr.write(plain(text).encode(encoding, "backslashreplace").decode(encoding))
