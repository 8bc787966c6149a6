"""boto3 clients, one per service and region, with limits on time and retries."""

import os
import threading
import time
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import boto3
import botocore.session
import botocore.utils
from botocore.config import Config

from reconciler import __version__
from reconciler.adapters.aws.errors import translated
from reconciler.adapters.aws.request_limits import RequestLimits
from reconciler.model.errors import Refused
from reconciler.model.ids import Region
from reconciler.ports.clock import RemoteClock
from reconciler.records.times import http_date

if TYPE_CHECKING:
    from mypy_boto3_autoscaling import AutoScalingClient
    from mypy_boto3_ec2 import EC2Client

CONFIG = Config(
    # For reads; only `retries` repeats changes. `request_limits` limits the rate of calls, since
    # the adaptive mode learns only from being throttled.
    retries={"mode": "standard", "total_max_attempts": 4},
    connect_timeout=5,
    read_timeout=15,
    max_pool_connections=10,
    user_agent_extra=f"fleet-reconciler/{__version__}",
)

ONCE = Config(retries={"mode": "standard", "total_max_attempts": 1})

LONG_POLL = Config(read_timeout=30, max_pool_connections=16)
"""For calls to SQS, which wait for messages."""

PACED = ("ec2", "autoscaling")
"""Services whose calls wait for their turn, and whose answers state the time."""

READING = ("Describe", "Get", "List")
"""Prefixes of operations that change nothing."""


def home_region() -> str | None:
    """Return the region of the AWS settings, environment or profile; None when they have none."""
    stated = os.environ.get("AWS_REGION", "")  # noqa: TID251 - the SDKs' variable, which boto3 skips
    with translated("AWS settings", changing=False):
        return stated or boto3.session.Session().region_name


def make_session() -> boto3.session.Session:
    """Return a session that parses times quickly.

    An answer about a thousand instances has thousands of times, and botocore tries many formats for
    each, which took a twelfth of the program's CPU time in a busy cluster.
    """
    session = botocore.session.Session()
    factory: Any = session.get_component("response_parser_factory")
    factory.set_parser_defaults(timestamp_parser=parse_time)
    return boto3.session.Session(botocore_session=session)


def parse_time(stated: Any) -> datetime:
    """Return a time in an answer, in any format that botocore knows.

    Raises:
        ValueError: It is not a time.
    """
    if isinstance(stated, str) and "T" in stated:
        try:
            found = datetime.fromisoformat(stated)
        except ValueError:
            pass
        else:
            if found.tzinfo is not None:
                return found
    parsed: datetime = botocore.utils.parse_timestamp(stated)
    return parsed


class Clients:
    """Creates clients when they are first needed; keys and endpoints come from boto3's chain.

    Args:
        config: Time limits and retries.
        request_limits: Limits the rate of calls to EC2.
        fence: Called right before every request that changes something, retries included; False: it
            is not sent, and Refused is raised.
        awake_seconds: A clock that never jumps, and also runs while the machine is suspended.
        answered: Called at each answer to a call that the loop waits for, whatever the answer is;
            not for SQS, which is polled in the background.
    """

    def __init__(
        self,
        config: Config = CONFIG,
        *,
        request_limits: RequestLimits | None = None,
        fence: Callable[[], bool] | None = None,
        awake_seconds: Callable[[], float] = time.monotonic,
        answered: Callable[[], object] = lambda: None,
    ) -> None:
        self._config = config
        self._request_limits = request_limits or RequestLimits()
        self._fence = fence
        self._answered = answered
        self._lock = threading.Lock()
        self._session: boto3.session.Session | None = None
        self._clients: dict[tuple[str, Region, bool], Any] = {}
        self._server_clock = RemoteClock(awake_seconds)

    @property
    def attempts(self) -> int:
        """Return how often a call may be sent in total."""
        retries: Any = getattr(self._config, "retries", None) or {}
        return int(retries.get("total_max_attempts", 1))

    def server_time(self) -> datetime | None:
        """Return what EC2's own clock shows now; None before its first answer."""
        return self._server_clock.now()

    def ec2(self, region: Region, *, changing: bool = False) -> "EC2Client":
        """Return the EC2 client of a region.

        Args:
            region: The region.
            changing: Whether it is for changes; such a client never retries by itself.

        Raises:
            Forbidden: There are no usable credentials.
            Unavailable: There is no such region or endpoint.
        """
        client: EC2Client = self._client("ec2", region, changing=changing)
        return client

    def autoscaling(self, region: Region, *, changing: bool = False) -> "AutoScalingClient":
        """Return the Auto Scaling client of a region.

        Args:
            region: The region.
            changing: Whether it is for changes; such a client never retries by itself.

        Raises:
            Forbidden: There are no usable credentials.
            Unavailable: There is no such region or endpoint.
        """
        client: AutoScalingClient = self._client("autoscaling", region, changing=changing)
        return client

    def eks(self, region: Region) -> Any:
        """Return the EKS client of a region, which knows managed node groups.

        Raises:
            Forbidden: There are no usable credentials.
            Unavailable: There is no such region or endpoint.
        """
        return self._client("eks", region)

    def pricing(self, region: Region) -> Any:
        """Return the Price List client; only some regions, such as us-east-1, have that API.

        Raises:
            Forbidden: There are no usable credentials.
            Unavailable: There is no such endpoint.
        """
        return self._client("pricing", region)

    def sqs(self, region: Region) -> Any:
        """Return the SQS client of a region, for long polls.

        Raises:
            Forbidden: There are no usable credentials.
            Unavailable: There is no such region or endpoint.
        """
        return self._client("sqs", region)

    def _client(self, service: str, region: Region, *, changing: bool = False) -> Any:
        with self._lock:  # creating clients is not thread-safe, using them is
            key = service, region, changing
            if key not in self._clients:
                with translated(f"{service} {region}", changing=False):
                    self._session = self._session or make_session()
                    make: Any = self._session.client
                    config = self._config.merge(ONCE) if changing else self._config
                    config = config.merge(LONG_POLL) if service == "sqs" else config
                    made: Any = make(service, region_name=region, config=config)
                    if service in PACED:
                        pace = partial(self._wait_for_turn, service, region)
                        made.meta.events.register("before-send", pace)
                        made.meta.events.register("after-call", self._note_answer)
                    made.meta.events.register("before-send", self._check_fence)
                    self._clients[key] = made
            return self._clients[key]

    def _wait_for_turn(
        self, service: str, region: Region, event_name: str, request: Any, **_facts: Any
    ) -> None:
        """Wait for the request's turn; botocore calls this for each request, retries included.

        Raises:
            Throttled: The wait would be too long.
        """
        body = request.body if isinstance(request.body, bytes) else b""
        action = event_name.rpartition(".")[2]
        self._request_limits.admit(region, action, body, service=service)

    def _note_answer(self, http_response: Any = None, **_facts: Any) -> None:
        """Note an answer; botocore calls this for each one."""
        self._answered()
        headers: Any = getattr(http_response, "headers", None) or {}
        moment = http_date(headers.get("Date"))
        if moment is not None:
            self._server_clock.tell(moment)

    def _check_fence(self, event_name: str, **_facts: Any) -> None:
        """Check the fence; botocore calls this for each request after signing, before sending.

        Raises:
            Refused: The fence is closed.
        """
        operation = event_name.rpartition(".")[2]
        if operation.startswith(READING) or self._fence is None or self._fence():
            return
        raise Refused(operation, "this replica is not the leader")

    def close(self) -> None:
        """Close all connections and end all waits."""
        self._request_limits.stop()
        with self._lock:
            for client in self._clients.values():
                client.close()
            self._clients.clear()
