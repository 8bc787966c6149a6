"""Takes secrets out of what is logged: by the name of the key, by the look of the text."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

HIDDEN = "***"
_DEPTH_MAX = 8

_SECRET_KEY = re.compile(
    r"(?i)(secret|passw|token|authorization|credential|slack_hook|webhook|private_key|access_key"
    r"|user_?data|cookie)"
)
_SECRET_TEXTS = (
    # Credentials in an address: https://user:password@host
    (re.compile(r"(?<=://)[^/\s@:]*:[^/\s@]+(?=@)"), HIDDEN),
    (re.compile(r"(?i)(https?://[^/\s]*slack\.com/services/)[^\s\"']+"), rf"\1{HIDDEN}"),
    # AWS: key ids, and the signature of a presigned address
    (re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"), HIDDEN),
    (
        re.compile(r"(?i)(X-Amz-(?:Signature|Credential|Security-Token)=)[^&\s\"']+"),
        rf"\1{HIDDEN}",
    ),
    (re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9+/._~=-]{8,}"), rf"\1 {HIDDEN}"),
    # JSON Web Tokens, as service accounts have them
    (re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+"), HIDDEN),
    (re.compile(r"\b(?:gh[pousr]_|github_pat_|glpat-|xox[abpr]-)[A-Za-z0-9_-]{10,}"), HIDDEN),
)


class Scrubber:
    """Hides secrets in texts and structures.

    Args:
        secrets: Texts that are hidden wherever they appear (the hook's address, say).
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        # Short texts would hide half of every line.
        self._secrets = sorted({each for each in secrets if len(each) >= 8}, key=len, reverse=True)

    def text(self, text: str) -> str:
        """The text without what looks like a secret."""
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        for pattern, replacement in _SECRET_TEXTS:
            text = pattern.sub(replacement, text)
        return text

    def value(self, value: Any, depth: int = 0) -> Any:
        """Any value, whatever is in it."""
        if isinstance(value, str):
            return self.text(value)
        if value is None or isinstance(value, bool | int | float):
            return value
        if depth >= _DEPTH_MAX:
            return HIDDEN
        if isinstance(value, Mapping):
            return {key: self.entry(str(key), each, depth) for key, each in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [self.value(each, depth + 1) for each in value]
        return self.text(str(value))

    def entry(self, key: str, value: Any, depth: int = 0) -> Any:
        """The value of a key; hidden whole when the key's name says that it is secret."""
        if value and _SECRET_KEY.search(key) and not isinstance(value, bool | int | float):
            return HIDDEN
        return self.value(value, depth + 1)
