"""A parsed request: which resource, which object, which options."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import orjson
import yaml

from reconciler.sandbox.cluster.objects.resources import CATALOGUE, NAMESPACES, Resource
from reconciler.sandbox.cluster.objects.status import JsonObject, bad_request, protobuf_not_read

_YAML_TYPES = {"application/yaml", "application/apply-patch+yaml"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a client sent."""

    method: str
    path: tuple[str, ...]
    """Segments of the URL's path, unquoted."""
    query: dict[str, str]
    content_type: str = ""
    accept: str = ""
    user_agent: str = ""
    body: bytes = b""

    def flag(self, name: str) -> bool:
        """Return a boolean parameter."""
        return self.query.get(name, "").lower() in {"true", "1"}

    def number(self, name: str) -> int:
        """Return a whole-number parameter; 0 when it is missing.

        Raises:
            ApiError: 400.
        """
        text = self.query.get(name, "") or "0"
        if not (text.isascii() and text.isdigit()):
            raise bad_request(f'Invalid value: "{text}": {name} must be a non-negative integer')
        return int(text)

    @property
    def dry_run(self) -> bool:
        """Return whether `dryRun=All` was requested.

        Raises:
            ApiError: 400 for any other value.
        """
        value = self.query.get("dryRun", "")
        if value not in {"", "All"}:
            raise bad_request(f'Invalid value: dryRun: Unsupported value: "{value}"')
        return value == "All"

    def document(self) -> Any:
        """Return the parsed body; an empty object when there is none.

        Raises:
            ApiError: 400 for broken JSON or YAML, 415 for protobuf.
        """
        if not self.body:
            return {}
        if "protobuf" in self.content_type:
            raise protobuf_not_read(self.content_type)
        try:
            if self.content_type in _YAML_TYPES:
                return yaml.safe_load(self.body)
            return orjson.loads(self.body)
        except (ValueError, yaml.YAMLError) as error:
            raise bad_request(f"the object provided is unrecognized: {error}") from error

    def object(self) -> JsonObject:
        """Return the parsed body, which must be an object.

        Raises:
            ApiError: 400, 415.
        """
        document = self.document()
        if not isinstance(document, dict):
            raise bad_request("the object provided is unrecognized (must be of type object)")
        return document


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """The answer; with `stream` instead of `body` for a watch."""

    code: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    stream: Iterator[bytes] | None = None
    abandoned: bool = False
    """Whether the connection is closed instead of answering."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The resource, and the object, that a URL names."""

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """Return the object's key in the store."""
        return (self.namespace if self.resource.namespaced else "", self.name)


def read_request(method: str, url: str, headers: dict[str, str], body: bytes) -> Request:
    """Parse a request.

    Args:
        method: HTTP method, upper case.
        url: Path and query of the request line.
        headers: Names in lower case.
        body: As received.
    """
    parts = urlsplit(url)
    return Request(
        method=method,
        path=tuple(unquote(segment) for segment in parts.path.split("/") if segment),
        query=dict(parse_qsl(parts.query, keep_blank_values=True)),
        content_type=headers.get("content-type", "").partition(";")[0].strip().lower(),
        accept=headers.get("accept", ""),
        user_agent=headers.get("user-agent", ""),
        body=body,
    )


def read_target(path: tuple[str, ...]) -> Target | None:
    """Return the resource that a path names; None if it names none."""
    match path:
        case ("api", version, *segments):
            group = ""
        case ("apis", group, version, *segments):
            pass
        case _:
            return None
    if not segments:
        return None
    if segments[0] == "namespaces" and len(segments) >= 3:
        scoped = CATALOGUE.by_path.get((group, version, segments[2]))
        if scoped is not None and scoped.namespaced:
            return _target(scoped, segments[1], segments[3:])
    resource = CATALOGUE.by_path.get((group, version, segments[0]))
    if resource is None or (resource.namespaced and len(segments) > 1):
        return None
    return _target(resource, "", segments[1:])


def _target(resource: Resource, namespace: str, rest: list[str]) -> Target | None:
    if len(rest) > 2:
        return None
    name = rest[0] if rest else ""
    subresource = rest[1] if len(rest) > 1 else ""
    known = resource.subresources | ({"finalize"} if resource is NAMESPACES else set())
    if subresource and subresource not in known:
        return None
    return Target(resource=resource, namespace=namespace, name=name, subresource=subresource)
