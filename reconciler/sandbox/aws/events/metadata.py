"""Instance metadata (IMDSv2) of emulated instances: one HTTP server per requested instance.

Source: EC2 user guide, "How Instance Metadata Service Version 2 works": a session token comes from
a PUT that names its TTL and no proxy passed on; without a valid one every GET is answered 401.
"""

import json
import secrets
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from email.message import Message
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any, Final

from reconciler.model.errors import InputError
from reconciler.sandbox.aws.events.announcements import SCHEDULED_HOURS

Facts = Mapping[str, Any]
_TTL_HEADER: Final = "X-aws-ec2-metadata-token-ttl-seconds"
_TTL_MAX_SECONDS: Final = 21_600
_ROOT: Final = "/latest/meta-data/"
_GONE: Final = frozenset({"shutting-down", "stopped", "terminated"})


def documents(facts: Facts) -> Mapping[str, str]:
    """Return what the metadata of an instance has, by path below `meta-data/`."""
    found = {
        "instance-id": str(facts["instance_id"]),
        "instance-type": str(facts["instance_type"]),
        "local-hostname": str(facts["private_dns_name"]),
        "local-ipv4": str(facts["private_ip"]),
        "placement/availability-zone": str(facts["zone"]),
        "events/maintenance/scheduled": json.dumps(_scheduled(facts)),
    }
    ends_at, warned_at = facts["interrupted_at"], facts["rebalance_at"]
    if ends_at is not None:
        action = {"action": "terminate", "time": _rfc3339(ends_at)}
        found["spot/instance-action"] = json.dumps(action)
    if warned_at is not None:
        recommendation = {"noticeTime": _rfc3339(warned_at)}
        found["events/recommendations/rebalance"] = json.dumps(recommendation)
    return found


def _scheduled(facts: Facts) -> list[Mapping[str, str]]:
    starts = facts["scheduled_at"]
    if starts is None:
        return []
    starts_at = datetime.fromisoformat(starts).astimezone(UTC)
    ends_at = starts_at + timedelta(hours=SCHEDULED_HOURS)
    number = str(facts["instance_id"]).removeprefix("i-")
    event = {
        "NotBefore": _day_first(starts_at),
        "NotAfter": _day_first(ends_at),
        "Code": "instance-retirement",
        "Description": "The instance is running on degraded hardware",
        "EventId": f"instance-event-{number}",
        "State": "active",
    }
    return [event]


def _day_first(at: datetime) -> str:
    """`21 Jan 2019 09:00:43 GMT`, without the day of the week."""
    return format_datetime(at, usegmt=True).partition(", ")[2]


def _rfc3339(text: str) -> str:
    at = datetime.fromisoformat(text).astimezone(UTC).replace(microsecond=0)
    return at.isoformat().replace("+00:00", "Z")


class MetadataServers:
    """The requested servers, each on its own loopback port.

    Args:
        facts: The facts of an instance; None when there is none of this id.
        now: The time of the emulated AWS.
    """

    def __init__(self, facts: Callable[[str], Facts | None], now: Callable[[], datetime]) -> None:
        self._facts = facts
        self._now = now
        self._lock = Lock()
        self._servers: dict[str, tuple[ThreadingHTTPServer, Thread]] = {}

    def url(self, instance_id: str) -> str:
        """Return the address of an instance's metadata, served from now on.

        Raises:
            InputError: There is no such instance.
        """
        with self._lock:
            if instance_id not in self._servers:
                if self._facts(instance_id) is None:
                    raise InputError("metadata", f"there is no instance {instance_id!r}")
                self._servers[instance_id] = self._serve(instance_id)
            server, _ = self._servers[instance_id]
        return f"http://127.0.0.1:{server.server_port}"

    def stop(self) -> None:
        """Stop all of them."""
        with self._lock:
            servers, self._servers = self._servers, {}
        for server, thread in servers.values():
            server.shutdown()
            server.server_close()
            thread.join()

    def _serve(self, instance_id: str) -> tuple[ThreadingHTTPServer, Thread]:
        service = _Service(lambda: self._facts(instance_id), self._now)

        class Handler(_Handler):
            metadata = service

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        thread = Thread(
            target=server.serve_forever,
            kwargs={"poll_interval": 0.05},
            name=f"imds-{instance_id}",
            daemon=True,
        )
        thread.start()
        return server, thread


class _Service:
    """The metadata of one instance: its tokens and documents."""

    def __init__(self, facts: Callable[[], Facts | None], now: Callable[[], datetime]) -> None:
        self._facts = facts
        self._now = now
        self._tokens: dict[str, datetime] = {}

    def token(self, headers: Message) -> tuple[int, str, int]:
        """Answer a PUT: status, token, and the seconds that it lasts."""
        text = headers.get(_TTL_HEADER) or ""
        seconds = int(text) if text.isascii() and text.isdecimal() and len(text) < 6 else 0
        if headers.get("X-Forwarded-For") is not None:
            return 403, "", 0
        if not 1 <= seconds <= _TTL_MAX_SECONDS:
            return 400, "", 0
        token = secrets.token_urlsafe(40) + "=="
        now = self._now()
        valid = {each: until for each, until in self._tokens.items() if until > now}
        self._tokens = {**valid, token: now + timedelta(seconds=seconds)}
        return 200, token, seconds

    def document(self, token: str | None, path: str) -> tuple[int, str]:
        """Answer a GET: status and text."""
        until = self._tokens.get(token or "")
        if until is None or until <= self._now():
            return 401, ""
        facts = self._facts()
        found = documents(facts) if facts is not None else {}
        text = found.get(path.removeprefix(_ROOT)) if path.startswith(_ROOT) else None
        return (404, "") if text is None else (200, text)

    @property
    def silent(self) -> bool:
        """Return whether the instance does not run, so that requests get no answer."""
        facts = self._facts()
        return facts is None or facts["state"] in _GONE


class _Handler(BaseHTTPRequestHandler):
    """HTTP of one instance's metadata."""

    protocol_version = "HTTP/1.1"
    metadata: _Service

    def do_PUT(self) -> None:
        """Give a session token."""
        if self.metadata.silent or self.path != "/latest/api/token":
            self._answer(404, "")
            return
        status, token, seconds = self.metadata.token(self.headers)
        self._answer(status, token, {_TTL_HEADER: str(seconds)} if token else {})

    def do_GET(self) -> None:
        """Give a document."""
        token = self.headers.get("X-aws-ec2-metadata-token")
        self._answer(*self.metadata.document(token, self.path))

    def _answer(self, status: int, text: str, headers: Mapping[str, str] | None = None) -> None:
        if self.metadata.silent:
            self.close_connection = True
            return
        body = text.encode()
        self.send_response(status)
        for key, value in (headers or {}).items():
            self.send_header(key, value)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Do nothing: requests are not logged."""
