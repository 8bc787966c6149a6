"""The control API of the emulated AWS: what a sandbox or a test may do that a user may not.

GET    /_sandbox/health      {"status": "ok"}
GET    /_sandbox/calls       ?service= &action= &mutating=true|false &user_agent=
                             -> {"counts", "calls"}
DELETE /_sandbox/calls       forget them
GET    /_sandbox/faults      those of scripts in force, each with how often it has `shown`
POST   /_sandbox/faults      {"seed", ...}: more of them, the `aws` part of a fault script
DELETE /_sandbox/faults      take all of these away
POST   /_sandbox/interrupt   {"instance_ids": [...], "notice_seconds": 120}: spot interruptions
POST   /_sandbox/announce    {"kind": "rebalance|scheduled-change", "instance_ids": [...],
                             "starts_in_seconds": 0}: events on the default bus
GET    /_sandbox/capacity    {"limits": [...]}
POST   /_sandbox/capacity    {"instance_type", "zone", "lifecycle", "code", "message", "remaining"}
DELETE /_sandbox/capacity    the same first three, or an empty body for all
POST   /_sandbox/terminate   {"instance_ids": [...], "reason": "user|spot-interruption|failure"}
POST   /_sandbox/iam         {"enforced": true|false}: check signatures and IAM policies
GET    /_sandbox/metadata    ?instance_id= -> {"url"}: IMDSv2 of the instance, served from now on
GET    /_sandbox/instances   ?since=N &wait_seconds=S -> {"change", "instances"}; waits for news
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from types import MappingProxyType
from typing import Any, get_args
from urllib.parse import parse_qs

from reconciler.model.errors import InputError
from reconciler.sandbox.aws.call_log import CallLog, HttpRequest
from reconciler.sandbox.aws.events.announcements import AnnouncementKind
from reconciler.sandbox.aws.events.interruptions import NOTICE_SECONDS
from reconciler.sandbox.aws.events.metadata import MetadataServers
from reconciler.sandbox.aws.faults.injected import CapacityLimit
from reconciler.sandbox.aws.moto_server.surface import enforce_iam
from reconciler.sandbox.aws.state.launcher import EndReason
from reconciler.sandbox.aws.world import Ec2World
from reconciler.sandbox.control_api import PREFIX, read_body
from reconciler.sandbox.faults.aws import AwsFaults
from reconciler.sandbox.faults.script import read_document, read_seed

_WAIT_SECONDS_MAX = 60.0

Body = Mapping[str, Any]
Query = Mapping[str, str]


class Control:
    """The control API; `handle` serves it over HTTP, the methods serve it in-process."""

    def __init__(self, world: Ec2World, calls: CallLog) -> None:
        self.world = world
        self.calls = calls
        self.faults = world.faults
        self.metadata = MetadataServers(world.facts, world.now)
        self._routes: Mapping[tuple[str, str], Callable[[Query, Body], Body]] = MappingProxyType(
            {
                ("GET", "health"): lambda _query, _body: {"status": "ok"},
                ("GET", "calls"): self._get_calls,
                ("DELETE", "calls"): self._delete_calls,
                ("GET", "faults"): self._get_faults,
                ("POST", "faults"): self._post_faults,
                ("DELETE", "faults"): self._delete_faults,
                ("POST", "interrupt"): self._post_interrupt,
                ("POST", "announce"): self._post_announce,
                ("GET", "capacity"): self._get_capacity,
                ("POST", "capacity"): self._post_capacity,
                ("DELETE", "capacity"): self._delete_capacity,
                ("POST", "terminate"): self._post_terminate,
                ("POST", "iam"): self._post_iam,
                ("GET", "metadata"): self._get_metadata,
                ("GET", "instances"): self._get_instances,
            }
        )

    def handle(self, request: HttpRequest) -> tuple[int, Body]:
        """Answer one request: HTTP status and a document for JSON."""
        route = self._routes.get((request.method, request.path.removeprefix(PREFIX).strip("/")))
        if route is None:
            return 404, {"error": f"no {request.method} {request.path} here"}
        try:
            flat = {key: values[-1] for key, values in parse_qs(request.query).items()}
            return 200, route(flat, read_body(request.body))
        except InputError as error:
            return 400, {"error": str(error)}

    def terminate(
        self, instance_ids: list[str], reason: EndReason = EndReason.USER
    ) -> tuple[str, ...]:
        """End fleet instances from outside; return those that existed."""
        return self.world.terminate(instance_ids, reason)

    def _get_calls(self, query: Query, _body: Body) -> Body:
        mutating = query.get("mutating")
        calls = self.calls.calls(
            service=query.get("service"),
            action=query.get("action"),
            mutating=None if mutating is None else mutating == "true",
            user_agent=query.get("user_agent", ""),
        )
        return {"counts": self.calls.counts(), "calls": [call.to_json() for call in calls]}

    def _delete_calls(self, _query: Query, _body: Body) -> Body:
        self.calls.clear()
        return {}

    def _get_faults(self, _query: Query, _body: Body) -> Body:
        return self.faults.script.shown()

    def _post_faults(self, query: Query, body: Body) -> Body:
        seed, document = read_seed(body)
        self.world.put_faults(read_document(AwsFaults, document), seed)
        return self._get_faults(query, body)

    def _delete_faults(self, _query: Query, _body: Body) -> Body:
        self.faults.script.clear()
        return {}

    def _post_interrupt(self, _query: Query, body: Body) -> Body:
        seconds = body.get("notice_seconds", NOTICE_SECONDS)
        if not isinstance(seconds, int | float) or seconds < 0:
            raise InputError("interrupt", "notice_seconds is not a duration")
        return {"interrupted": list(self.world.interrupt(_ids(body, "interrupt"), seconds))}

    def _post_announce(self, _query: Query, body: Body) -> Body:
        known: Mapping[str, AnnouncementKind] = {each: each for each in get_args(AnnouncementKind)}
        kind, seconds = known.get(body.get("kind", "")), body.get("starts_in_seconds", 0)
        if kind is None:
            raise InputError("announce", f"kind is none of {', '.join(known)}")
        if not isinstance(seconds, int | float):
            raise InputError("announce", "starts_in_seconds is not a duration")
        return {"announced": list(self.world.announce(kind, _ids(body, "announce"), seconds))}

    def _get_capacity(self, _query: Query, _body: Body) -> Body:
        return {"limits": [asdict(limit) for limit in self.faults.limits()]}

    def _post_capacity(self, _query: Query, body: Body) -> Body:
        unknown = set(body) - {field.name for field in fields(CapacityLimit)}
        if unknown:
            raise InputError("capacity", f"unknown keys {', '.join(sorted(unknown))}")
        limit = CapacityLimit(**body)
        if not isinstance(limit.remaining, int):
            raise InputError("capacity", "remaining is not an integer")
        self.faults.limit(limit)
        return asdict(limit)

    def _delete_capacity(self, _query: Query, body: Body) -> Body:
        if not body:
            self.faults.clear()
            return {}
        unknown = set(body) - {"instance_type", "zone", "lifecycle"}
        if unknown:
            raise InputError("capacity", f"unknown keys {', '.join(sorted(unknown))}")
        return {"lifted": self.faults.lift(**body)}

    def _post_terminate(self, _query: Query, body: Body) -> Body:
        try:
            reason = EndReason(body.get("reason", "user"))
        except ValueError as error:
            raise InputError("terminate", str(error)) from error
        return {"terminated": list(self.terminate(_ids(body, "terminate"), reason))}

    def enforce_iam(self, *, enforced: bool) -> None:
        """Check signatures and IAM policies from now on, or stop doing so."""
        enforce_iam(enforced=enforced)

    def _post_iam(self, _query: Query, body: Body) -> Body:
        enforced = body.get("enforced")
        if not isinstance(enforced, bool):
            raise InputError("iam", "enforced is neither true nor false")
        self.enforce_iam(enforced=enforced)
        return {"enforced": enforced}

    def _get_metadata(self, query: Query, _body: Body) -> Body:
        return {"url": self.metadata.url(query.get("instance_id", ""))}

    def _get_instances(self, query: Query, _body: Body) -> Body:
        try:
            since = int(query.get("since", "-1"))
            wait = min(float(query.get("wait_seconds", "0")), _WAIT_SECONDS_MAX)
        except ValueError as error:
            raise InputError("instances", str(error)) from error
        change, instances = self.world.instances(since=since, wait_seconds=wait)
        return {"change": change, "instances": list(instances)}


def _ids(body: Body, what: str) -> list[str]:
    ids = body.get("instance_ids")
    if not isinstance(ids, list):
        raise InputError(what, "instance_ids is not a list")
    return list(map(str, ids))
