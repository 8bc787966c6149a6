"""Recorded demand in a bucket of S3: a compressed object per few minutes of a day."""

import gzip
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

import boto3
from boto3.exceptions import Boto3Error
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError

from reconciler.adapters.recording.queued import LINES_LOST, UNWRITTEN_BYTES_MAX, QueuedLog
from reconciler.model.errors import Forbidden, PortError, Unavailable

SCHEME: Final = "s3://"
OBJECT_SECONDS: Final = 300.0
"""The time that one object covers, which a killed process may lose."""
OBJECT_BYTES: Final = 8 << 20
_NAME: Final = re.compile(r"demand-\d{4}-\d\d-\d\d/\d{12}\.jsonl\.gz", re.ASCII)
"""Names of our objects below the prefix. Others that begin like them are somebody else's."""
_DELETED_AT_ONCE: Final = 1000
_TEXT_MAX: Final = 300
_STILL_EXPIRED: Final = "refreshed credentials are still expired"
"""Part of the message of botocore's RuntimeError, which has no class of its own for this."""
_DENIED: Final = frozenset({"AccessDenied", "403", "AllAccessDisabled"})


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceInS3:
    """Names a bucket, and the prefix of the keys in it."""

    bucket: str
    prefix: str
    """Without a trailing slash; may be empty."""

    def key(self, name: str) -> str:
        """Return the key of an object of this name."""
        return f"{self.prefix}/{name}" if self.prefix else name

    def __str__(self) -> str:
        return f"{SCHEME}{self.bucket}/{self.prefix}"


def place_in_s3(path: str) -> PlaceInS3 | None:
    """Return the place that `s3://bucket/prefix` names; None for any other path."""
    if not path.startswith(SCHEME):
        return None
    bucket, _, prefix = path.removeprefix(SCHEME).partition("/")
    return PlaceInS3(bucket=bucket, prefix=prefix.strip("/"))


def s3_client() -> Any:
    """Return a boto3 client; keys, region and endpoint come from boto3's chain.

    Raises:
        PortError: The chain is not usable: a profile that does not exist, say.
    """
    limits = Config(
        connect_timeout=10, read_timeout=60, retries={"max_attempts": 4, "mode": "standard"}
    )
    return _asked("AWS", partial(boto3.client, "s3", config=limits))


class BucketLog(QueuedLog):
    """Collects lines and puts `demand-<day>/<time>.jsonl.gz`, every five minutes or 8 MiB.

    Args:
        place: The place.
        s3: A boto3 client.
        keep_seconds: Objects of days that ended longer ago are deleted, once a day, from the second
            of two consecutive days on.
        failed: Called with the reason when lines could not be written; they are kept for the next
            try.
        object_seconds: The time that one object covers.
    """

    def __init__(
        self,
        place: PlaceInS3,
        s3: Any,
        keep_seconds: float,
        failed: Callable[[PortError], None],
        object_seconds: float = OBJECT_SECONDS,
    ) -> None:
        self._place = place
        self._s3 = s3
        self._keep = timedelta(seconds=keep_seconds)
        self._object = timedelta(seconds=object_seconds)
        self._gathered: list[bytes] = []
        self._bytes = 0
        self._begun_at: datetime | None = None
        self._closed: list[tuple[datetime, bytes]] = []
        """Complete objects that S3 has not accepted yet: start and content of each."""
        self._day = ""
        super().__init__(failed, idle_seconds=object_seconds)

    def write(self, at: datetime, lines: bytes) -> None:
        """See `QueuedLog`."""
        begun = self._begun_at
        if begun is not None and (at - begun >= self._object or at.date() != begun.date()):
            self._close()
        if self._bytes + sum(len(body) for _, body in self._closed) > UNWRITTEN_BYTES_MAX:
            self._gathered, self._bytes, self._begun_at, self._closed = [], 0, None, []
            raise Unavailable(str(self._place), LINES_LOST)
        if self._begun_at is None:
            self._begun_at = at
        self._gathered.append(lines)
        self._bytes += len(lines)
        if self._bytes >= OBJECT_BYTES:
            self._close()
        self._put()

    def rest(self) -> None:
        """See `QueuedLog`."""
        self._close()
        self._put()

    def _close(self) -> None:
        """Complete the current object."""
        if self._begun_at is not None:
            body = gzip.compress(b"".join(self._gathered), mtime=0)
            self._closed.append((self._begun_at, body))
        self._gathered, self._bytes, self._begun_at = [], 0, None

    def _put(self) -> None:
        """Put the complete objects in their order; those that fail are kept."""
        while self._closed:
            begun, body = self._closed[0]
            key = self._place.key(f"demand-{begun:%Y-%m-%d}/{begun:%H%M%S%f}.jsonl.gz")
            put = partial(self._s3.put_object, Bucket=self._place.bucket, Key=key)
            _asked(self._place, partial(put, Body=body))
            del self._closed[0]
            if self._day != f"{begun:%Y-%m-%d}":
                self._day = f"{begun:%Y-%m-%d}"
                self._delete_old(begun)

    def _delete_old(self, at: datetime) -> None:
        """Delete what is older than the limit.

        Nothing is where the day before was not recorded: the clock may have jumped ahead.
        """
        oldest = self._place.key(f"demand-{at - self._keep:%Y-%m-%d}")
        before = self._place.key(f"demand-{at - timedelta(days=1):%Y-%m-%d}/")
        keys = _keys(self._place, self._s3)
        usual = any(key.startswith(before) for key in keys)
        old = [key for key in keys if key < oldest] if usual else []
        for first in range(0, len(old), _DELETED_AT_ONCE):
            some = [{"Key": key} for key in old[first : first + _DELETED_AT_ONCE]]
            delete = {"Objects": some, "Quiet": True}
            _asked(
                self._place,
                partial(self._s3.delete_objects, Bucket=self._place.bucket, Delete=delete),
            )


def fetch_days(place: PlaceInS3, s3: Any, oldest_day: str, directory: Path) -> None:
    """Download the objects of all days from one on (`2026-03-10`) into a directory, a file each.

    Raises:
        PortError: S3 did not answer, or refused.
    """
    first = place.key(f"demand-{oldest_day}")
    for key in _keys(place, s3):
        if key >= first:
            name = key.removeprefix(place.prefix).strip("/").replace("/", "-")
            target = str(directory / name)
            _asked(place, partial(s3.download_file, place.bucket, key, target))


def _keys(place: PlaceInS3, s3: Any) -> list[str]:
    """Return the keys of all recorded objects, sorted."""

    def listed() -> Iterator[str]:
        pages = s3.get_paginator("list_objects_v2")
        for page in pages.paginate(Bucket=place.bucket, Prefix=place.key("demand-")):
            keys = (str(each["Key"]) for each in page.get("Contents", []))
            yield from (key for key in keys if _NAME.fullmatch(key.removeprefix(place.key(""))))

    found: list[str] = _asked(place, lambda: sorted(listed()))
    return found


def _asked(place: PlaceInS3 | str, call: Callable[[], Any]) -> Any:
    """Return the result of a call of S3.

    Raises:
        Forbidden: The role may not make it, or its credentials have expired.
        Unavailable: S3 did not answer, or answered with another error, or this machine could not
            ask.
    """
    try:
        return call()
    except ClientError as error:
        code = str(error.response.get("Error", {}).get("Code", ""))
        if code in _DENIED:
            hint = "reconciler manifest --iam-policy capacity-loop prints the policy"
            raise Forbidden(str(place), f"S3 answers {code}", hint) from error
        raise Unavailable(str(place), f"S3 answers {code}") from error
    except (BotoCoreError, ResponseParserError, ValueError) as error:  # a wrong endpoint, say
        what = f"S3 was not reached: {_message_of(error)}"
        raise Unavailable(str(place), what) from error
    except (Boto3Error, OSError) as error:  # of a download, and of this machine: its disk, say
        what = f"S3 could not be asked: {_message_of(error)}"
        raise Unavailable(str(place), what) from error
    except RuntimeError as error:
        if _STILL_EXPIRED not in str(error):
            raise  # a bug of ours
        what = "the credentials have expired: they were not renewed in time"
        hint = "check their source and this machine's clock"
        raise Forbidden(str(place), what, hint) from error


def _message_of(error: Exception) -> str:
    """Return an error in its own words."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return f"{type(error).__name__}: {error}"[:_TEXT_MAX]
