"""Takes secrets out of text before it reaches a log, an error or a page."""

import re
from collections.abc import Iterable, Mapping

_SECRET_NAME = re.compile(r"SECRET|TOKEN|PASSWORD|PASSWD|CREDENTIAL|PRIVATE_KEY|ACCESS_KEY|API_KEY")
_HARMLESS_NAME = re.compile(r"_(?:FILE|PATH|DIR|URI|URL)$")
_PATTERNS = (
    re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    re.compile(r"\bgh[pousr]_\w{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{16,}"),
    re.compile(
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL
    ),
    re.compile(r"(?<=://)[^/\s:@]*:[^/\s@]+(?=@)"),
    re.compile(r"(?i)(?<=authorization: )\S+(?: \S+)?"),
)
_MASK = "***"


def secrets_of(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Values of an environment whose names say that they are secret, longest first.

    Values under 6 characters are left out: masking them would only garble the text.
    """
    values = {
        value
        for name, value in environment.items()
        if _SECRET_NAME.search(name.upper())
        and not _HARMLESS_NAME.search(name.upper())
        and len(value) >= 6
    }
    return tuple(sorted(values, key=lambda value: (-len(value), value)))


def scrub(text: str, secrets: Iterable[str] = ()) -> str:
    """The text with known secrets, and what looks like keys and URL passwords, masked."""
    for secret in secrets:
        text = text.replace(secret, _MASK)
    for pattern in _PATTERNS:
        text = pattern.sub(_MASK, text)
    return text
