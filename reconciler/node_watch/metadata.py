"""The client of instance metadata, IMDSv2: gets a session token, reads the documents."""

import re
from collections.abc import Callable, Iterable, Mapping
from http.client import HTTPConnection
from typing import Final
from urllib.parse import urlsplit

from reconciler.model.errors import Forbidden, Unavailable, UsageError
from reconciler.model.interruption_annotation import AnnotatedNotice
from reconciler.node_watch.announcements import (
    Announcements,
    MalformedError,
    group_terminates,
    rebalance_notice,
    scheduled_notices,
    spot_notice,
)
from reconciler.node_watch.http_client import Answer, HttpClient

METADATA_URL: Final = "http://169.254.169.254"
TOKEN_SECONDS: Final = 21_600
"""The longest time that EC2 accepts."""
RENEW_SECONDS: Final = 300
"""How long before its end a token is renewed."""
TIMEOUT_SECONDS: Final = 2.0
BODY_BYTES_MAX: Final = 16 * 1024
_TOKEN: Final = re.compile(rb"[\x21-\x7e]{1,1024}")
_INSTANCE: Final = re.compile(r"i-[0-9a-f]{1,32}")
_TTL_HEADER: Final = "x-aws-ec2-metadata-token-ttl-seconds"
_ROOT: Final = "/latest/meta-data/"


class _Unanswered(Unavailable):
    """One document has no answer, or one that is too long: the others may have one."""


class InstanceMetadata:
    """Reads what EC2 announces to the instance.

    Args:
        url: URL of the service, `http://HOST[:PORT]`.
        monotonic_seconds: A clock that never jumps.
    """

    def __init__(self, url: str, monotonic_seconds: Callable[[], float]) -> None:
        host, port = _place(url)
        self._client = HttpClient(
            lambda: HTTPConnection(host, port, timeout=TIMEOUT_SECONDS),
            body_bytes_max=BODY_BYTES_MAX,
            keep_alive=True,
        )
        self._monotonic_seconds = monotonic_seconds
        self._token = ""
        self._renew_at_seconds = 0.0

    def read(self) -> Announcements:
        """Return what is announced now; documents that cannot be read are named in `problems`.

        Raises:
            PortError: The service cannot be reached, or answers no request.
        """
        found: list[Announcements] = []
        refused: list[Announcements] = []
        for path, reader in _READERS.items():
            try:
                answer = self._get(path)
            except _Unanswered as error:
                refused.append(Announcements(problems=(f"{path}: {error.what}",)))
                continue
            if answer.status == 200:
                found.append(_read(path, reader, answer.body))
            elif answer.status == 404:
                found.append(Announcements())
            else:
                refused.append(Announcements(problems=(f"{path}: status {answer.status}",)))
        if not found:
            raise Unavailable(
                "instance metadata", "; ".join(p for r in refused for p in r.problems)
            )
        return _joined([*found, *refused])

    def instance_id(self) -> str:
        """Return the id of the instance.

        Raises:
            PortError: It cannot be read.
        """
        answer = self._get("instance-id")
        text = answer.body.decode("ascii", "replace").strip()
        if answer.status != 200 or not _INSTANCE.fullmatch(text):
            raise Unavailable("instance-id", f"cannot be read (status {answer.status})")
        return text

    def close(self) -> None:
        """Give up the connection."""
        self._client.close()

    def _get(self, path: str) -> Answer:
        """Return an answer, with a valid token; a refused one is replaced once."""
        for first in (True, False):
            if not self._token or self._monotonic_seconds() >= self._renew_at_seconds:
                self._renew()
            headers = {"X-aws-ec2-metadata-token": self._token}
            try:
                answer = self._client.ask("GET", _ROOT + path, headers)
            except Unavailable as error:
                raise _Unanswered(error.where, error.what) from error
            if answer.status != 401:
                return answer
            self._token = ""
            if not first:
                break
        raise Forbidden(f"GET {path}", "a new token is refused")

    def _renew(self) -> None:
        """Get a token.

        Raises:
            Forbidden: Instance metadata is disabled.
            Unavailable: The service gave no token.
        """
        where = "PUT /latest/api/token"
        headers = {_TTL_HEADER: str(TOKEN_SECONDS), "Content-Length": "0"}
        answer = self._client.ask("PUT", "/latest/api/token", headers)
        if answer.status == 403:
            raise Forbidden(where, "instance metadata is switched off")
        if answer.status != 200 or not _TOKEN.fullmatch(answer.body):
            raise Unavailable(where, f"gave no token (status {answer.status})")
        text = answer.headers.get(_TTL_HEADER, "")
        seconds = int(text) if text.isascii() and text.isdecimal() and len(text) < 6 else 0
        lasts_seconds = min(seconds or TOKEN_SECONDS, TOKEN_SECONDS)
        margin_seconds = min(RENEW_SECONDS, lasts_seconds / 2)
        self._token = answer.body.decode("ascii")
        self._renew_at_seconds = self._monotonic_seconds() + lasts_seconds - margin_seconds


Reader = Callable[[bytes], Announcements]

_READERS: Final[Mapping[str, Reader]] = {
    "spot/instance-action": lambda body: Announcements(notices=frozenset({spot_notice(body)})),
    "events/recommendations/rebalance": lambda body: Announcements(
        notices=frozenset({rebalance_notice(body)})
    ),
    "events/maintenance/scheduled": lambda body: Announcements(notices=scheduled_notices(body)),
    "autoscaling/target-lifecycle-state": lambda body: Announcements(
        group_terminates=group_terminates(body)
    ),
}
"""The most urgent first."""


def _read(path: str, reader: Reader, body: bytes) -> Announcements:
    try:
        return reader(body)
    except MalformedError as error:
        return Announcements(problems=(f"{path}: {error}",))


def _joined(parts: Iterable[Announcements]) -> Announcements:
    known = list(parts)
    return Announcements(
        notices=frozenset[AnnotatedNotice]().union(*(each.notices for each in known)),
        group_terminates=any(each.group_terminates for each in known),
        problems=tuple(problem for each in known for problem in each.problems),
    )


def _place(url: str) -> tuple[str, int]:
    """Return host and port of the service.

    Raises:
        UsageError: It is not an address of an HTTP server.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or 80
    except ValueError as error:
        raise UsageError("--metadata-url", f"{url!r} is not a valid address: {error}") from error
    if parts.scheme != "http" or not host or parts.path.strip("/") or parts.query:
        raise UsageError("--metadata-url", f"{url!r} is not http://HOST[:PORT]", METADATA_URL)
    return host, port
