"""Masks secrets in the output of programs before it becomes part of an error."""

import re
from collections.abc import Iterable, Mapping

from reconciler.telemetry.scrubbing import HIDDEN, Scrubber

_SECRET_NAME = re.compile(r"SECRET|TOKEN|PASSWORD|PASSWD|CREDENTIAL|PRIVATE_KEY|ACCESS_KEY|API_KEY")
_HARMLESS_NAME = re.compile(r"_(?:FILE|PATH|DIR|URI|URL)$")
_LENGTH_MIN = 8
"""Masking shorter values would only garble the text."""


_OF_THE_ACCOUNT = (
    (re.compile(r"\barn:aws[\w-]*:[^\s\"',;()]+"), f"arn:{HIDDEN}"),
    (re.compile(r"(?i)(encoded authorization failure message: ?)\S+"), rf"\1{HIDDEN}"),
    (re.compile(r"\b\d{12}\b"), HIDDEN),
)
"""What AWS's errors say about the caller: roles and users, policies, the account's number."""


def secrets_of(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return values of an environment whose names say that they are secret, longest first."""
    values = {
        value.strip()  # printed without the newline that a Secret may end with
        for name, value in environment.items()
        if _SECRET_NAME.search(name.upper())
        and not _HARMLESS_NAME.search(name.upper())
        and len(value.strip()) >= _LENGTH_MIN
    }
    return tuple(sorted(values, key=lambda value: (-len(value), value)))


def scrub(text: str, secrets: Iterable[str] = ()) -> str:
    """Return a program's output with known secrets, and what looks like one, masked."""
    return Scrubber(secrets).text(text)


def without_account(text: str) -> str:
    """Return AWS's message for people outside the account: its number and ARNs are masked."""
    for pattern, instead in _OF_THE_ACCOUNT:
        text = pattern.sub(instead, text)
    return scrub(text)
