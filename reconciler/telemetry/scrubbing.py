"""Masks secrets in logs and errors: known ones, those that keys name, and by the form of texts."""

import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from reconciler.model.text import cut_inside

HIDDEN = "***"
_DEPTH_MAX = 8

_SECRET_KEY = re.compile(
    r"(?i)(secret|passw|token|authorization|credential|slack_hook|webhook|private_key|access_key"
    r"|user_?data|cookie)"
)
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?"
    r"(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\Z)",
    re.DOTALL,
)
_NAMED = (
    r"(?:(?:access|private|refresh|id|job|deploy|auth|api|session|security|vault|bot|ci)[-_]?)?token"
    r"|(?:client|app|api|shared|webhook)[-_]?secret|secret[-_]?(?:access[-_]?)?key"
    r"|passw(?:or)?d|passphrase|api[-_]?key"
)
"""Words for a secret that precede `=` in an address or a form and `:` in a header or JSON."""
_NAMED_IN_QUERY = (
    r"[\w.-]{0,32}(?:token|secret|passw|passphrase|credential|signature|(?:api|access)[-_]?key)"
    r"[\w.-]{0,32}|auth|jwt|key|pass|pw|pwd|sig"
)
"""What a query of an address calls a secret: each value there is preceded by its name."""
_SECRET_TEXTS = (
    # Each takes time in proportion to the text, as texts come from strangers.
    # with its lines; in JSON these are escapes
    (_PRIVATE_KEY, HIDDEN),
    # Credentials in an address: https://user:password@host, https://token@host; with one slash
    # where a library took it for a path
    (re.compile(r"(?:(?<=://)|(?<=[a-z]:/))[^/\s@:]*:[^/\s]+(?=@)"), HIDDEN),
    # The same with a slash in the password, which is invalid in addresses; a number after the colon
    # is a port
    (re.compile(r"(?<=://)[^/\s@:\"'<>]{0,99}:(?!\d{0,5}[/?#])[^\s\"'<>]{1,256}(?=@)"), HIDDEN),
    (re.compile(r"(?i)(?<=http://)[^/\s@]+(?=@)|(?<=https://)[^/\s@]+(?=@)"), HIDDEN),
    (
        re.compile(
            r"(?i)(https?://[^/\s]*slack(?:-gov)?\.com/(?:services|workflows|triggers)/)[^\s\"']+"
        ),
        rf"\1{HIDDEN}",
    ),
    (re.compile(rf"(?i)([?&](?:{_NAMED_IN_QUERY})=)[^&\s\"'#]+"), rf"\1{HIDDEN}"),
    # AWS: key ids, and the signature of a presigned address
    (re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"), HIDDEN),
    (
        re.compile(r"(?i)(X-Amz-(?:Signature|Credential|Security-Token)=)[^&\s\"']+"),
        rf"\1{HIDDEN}",
    ),
    (re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9+/._~=-]{8,}"), rf"\1 {HIDDEN}"),
    # JSON Web Tokens, as service accounts have them. Only the first `eyJ` of a word is tried: where
    # what follows it is no token, neither is what follows a later one, and a word of nothing else
    # takes time by the square of its length
    (
        re.compile(
            r"(?<![A-Za-z0-9_-])(?>([A-Za-z0-9_-]*?)\beyJ)"
            r"[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]+"
        ),
        rf"\1{HIDDEN}",
    ),
    (re.compile(r"\b(?:gh[pousr]_|github_pat_|xox[a-z]-|xapp-)[A-Za-z0-9_-]{10,}"), HIDDEN),
    # GitLab: https://docs.gitlab.com/security/tokens/#token-prefixes, read 2026-11
    (
        re.compile(
            r"\bgl(?:pat|oas|dt|rt|rtr|cbt|ptt|ft|imt|agent|wt|soat|ffct)-[A-Za-z0-9_.-]{10,}"
        ),
        HIDDEN,
    ),
    (
        re.compile(
            rf"(?i)(?<![a-z])((?:{_NAMED})(?:=|\\?[\"']?:\s*)(?:b(?=[\"']))?\\?[\"']?)"
            r"[^&\s\"'\\,;]{4,}"
        ),
        rf"\1{HIDDEN}",
    ),
    # XML: STS answers with credentials, and EC2 with user data, which botocore logs with -vvv
    (re.compile(rf"(?i)(<(?:{_NAMED}|user_?data)>)[^<]+"), rf"\1{HIDDEN}"),
)

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


class Scrubber:
    """Masks secrets in texts and structures.

    Args:
        secrets: Texts that are masked everywhere, such as the hook's address.
        characters_max: The length to which texts are cut after they are masked, before their end:
            that of a traceback says what failed. None: never.
    """

    def __init__(self, secrets: Iterable[str] = (), characters_max: int | None = None) -> None:
        self._characters_max = characters_max
        # Short texts would mask half of every line.
        known = {secret for secret in secrets if len(secret) >= 8}
        # In an address they are percent-encoded.
        known |= {quote(each, safe="", errors="surrogatepass") for each in known}
        self._secrets = sorted(known, key=lambda each: (-len(each), each))

    def text(self, text: str) -> str:
        """Return the text without what looks like a secret."""
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        for pattern, replacement in _SECRET_TEXTS:
            text = pattern.sub(replacement, text)
        return text if self._characters_max is None else cut_inside(text, self._characters_max)

    def value(self, value: Any, depth: int = 0) -> Any:
        """Return any value, with all secrets in it masked."""
        if isinstance(value, str):
            return self.text(value)
        if value is None or isinstance(value, bool | int | float):
            return value
        if depth >= _DEPTH_MAX:
            return HIDDEN
        if isinstance(value, Mapping):
            return {
                self.text(key) if isinstance(key, str) else key: self.entry(str(key), each, depth)
                for key, each in value.items()
            }
        if isinstance(value, list | tuple | set | frozenset):
            return [self.value(each, depth + 1) for each in value]
        return self.text(str(value))

    def entry(self, key: str, value: Any, depth: int = 0) -> Any:
        """Return the value of a key, masked as a whole when its name says that it is secret."""
        if value and _SECRET_KEY.search(key) and not isinstance(value, bool | int | float):
            return HIDDEN
        return self.value(value, depth + 1)


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
