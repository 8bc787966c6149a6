"""Maps requests to verbs, and results to answers."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson

from reconciler.sandbox.cluster.objects.api import Api
from reconciler.sandbox.cluster.objects.patches import APPLY, patch_function
from reconciler.sandbox.cluster.objects.resources import NAMESPACES
from reconciler.sandbox.cluster.objects.selectors import matcher
from reconciler.sandbox.cluster.objects.status import (
    ApiError,
    JsonObject,
    bad_request,
    internal_error,
    method_not_allowed,
    no_such_path,
    success,
)
from reconciler.sandbox.cluster.objects.store import Entry
from reconciler.sandbox.cluster.requests import discovery
from reconciler.sandbox.cluster.requests.eviction import evict
from reconciler.sandbox.cluster.requests.request import Request, Response, Target, read_target
from reconciler.sandbox.cluster.requests.scale import get_scale, set_scale
from reconciler.sandbox.cluster.requests.table import table, table_lines
from reconciler.sandbox.cluster.requests.watching import (
    Selection,
    WatchOptions,
    check_watch,
    list_body,
    list_page,
    watch,
)

_LOG = logging.getLogger(__name__)
_WATCH_SECONDS_DEFAULT = 1800
"""A watch without timeoutSeconds ends after this (the API server: 30 to 60 min)."""
_HEALTH = {("healthz",), ("livez",), ("readyz",)}
PUBLIC = _HEALTH | {("version",)}
"""Paths that need no token (system:public-info-viewer)."""


def _json(body: JsonObject, code: int = 200) -> Response:
    return Response(code=code, body=orjson.dumps(body))


def _object(entry: Entry, code: int = 200) -> Response:
    return Response(code=code, body=entry.typed())


@dataclass(frozen=True, slots=True, kw_only=True)
class Router:
    """Answers requests.

    Args:
        api: The verbs.
        ready: Whether the controllers run; what /readyz answers.
        bookmark_seconds: Between bookmarks on a quiet watch.
        token: What a TokenRequest is answered with.
    """

    api: Api
    ready: Callable[[], bool]
    bookmark_seconds: float
    token: str

    def answer(self, request: Request) -> Response:
        """Execute one request; errors become Status answers."""
        try:
            return self._answer(request)
        except ApiError as error:
            headers = {}
            if error.retry_after_seconds:
                headers["Retry-After"] = str(error.retry_after_seconds)
            body = orjson.dumps(error.status())
            return Response(code=error.code, body=body, headers=headers)
        except Exception as error:  # noqa: BLE001 - the last boundary: an answer, never a reset
            _LOG.exception("request_failed method=%s path=%s", request.method, request.path)
            fault = internal_error(f"{type(error).__name__}: {error}")
            return Response(code=fault.code, body=orjson.dumps(fault.status()))

    def _answer(self, request: Request) -> Response:
        target = read_target(request.path)
        if target is not None:
            return self._resource(request, target)
        if request.path in _HEALTH:
            ready = request.path != ("readyz",) or self.ready()
            text = b"ok" if ready else b"not ready"
            return Response(code=200 if ready else 500, body=text, content_type="text/plain")
        if request.method == "POST" and len(request.path) == 4:
            return self._review(request)
        if request.path == ("openapi", "v2") and "proto-openapi" in request.accept:
            return Response(
                body=discovery.OPENAPI_V2_PROTOBUF,
                content_type=discovery.OPENAPI_V2_PROTOBUF_TYPE,
            )
        body = discovery.document(request.path)
        if body is None:
            raise no_such_path()
        return _json(body)

    def _review(self, request: Request) -> Response:
        """Answer access reviews: the token's owner may do everything."""
        kind = discovery.REVIEW_KINDS.get((request.path[1], request.path[3]))
        if kind is None:
            raise no_such_path()
        body = request.object()
        user = {"username": "sandbox-admin", "groups": ["system:masters", "system:authenticated"]}
        status = {"userInfo": user} if kind == "SelfSubjectReview" else {"allowed": True}
        return _json({**body, "kind": kind, "status": status}, 201)

    def _resource(self, request: Request, target: Target) -> Response:
        if target.subresource and target.subresource not in {"status", "finalize"}:
            return self._subresource(request, target)
        match request.method:
            case "GET" | "HEAD":
                return self._read(request, target)
            case "POST" if not target.name and (target.namespace or not target.resource.namespaced):
                return self._create(request, target)
            case "PUT" if target.name:
                return self._put(request, target)
            case "PATCH" if target.name:
                return self._patch(request, target)
            case "DELETE" if not target.subresource:
                return self._delete(request, target)
        raise method_not_allowed()

    # Reading

    def _read(self, request: Request, target: Target) -> Response:
        watching = request.flag("watch")
        if target.name and not watching:
            entry = self.api.store.get(target.resource, target.key)
            if "as=Table" in request.accept:
                return _json(table(target.resource, [entry], {}, self.api.now()))
            return _object(entry)
        fields = request.query.get("fieldSelector", "")
        if target.name:
            fields = f"metadata.name={target.name}"
        selection = Selection(
            resource=target.resource,
            namespace=target.namespace,
            matches=matcher(target.resource, request.query.get("labelSelector", ""), fields),
        )
        if watching:
            return self._watch(request, selection)
        return self._list(request, selection)

    def _list(self, request: Request, selection: Selection) -> Response:
        version, match = request.number("resourceVersion"), self._match(request)
        self._check_version(version)
        any_version = request.query.get("resourceVersion") == "0"
        page = list_page(
            self.api.store,
            selection,
            limit=0 if any_version else request.number("limit"),
            token=request.query.get("continue", ""),
            exact=version if match == "Exact" else 0,
        )
        if "as=Table" in request.accept:
            body = table(selection.resource, page.entries, page.metadata(), self.api.now())
            return _json(body)
        return Response(body=list_body(selection.resource, page))

    def _watch(self, request: Request, selection: Selection) -> Response:
        initial = (
            request.flag("sendInitialEvents") if "sendInitialEvents" in request.query else None
        )
        options = WatchOptions(
            version=request.number("resourceVersion"),
            timeout_seconds=request.number("timeoutSeconds") or _WATCH_SECONDS_DEFAULT,
            bookmarks=request.flag("allowWatchBookmarks"),
            bookmark_seconds=self.bookmark_seconds,
            initial_events=initial,
        )
        check_watch(options, request.query.get("resourceVersionMatch", ""))
        lines = watch(self.api.store, selection, options)
        if "as=Table" in request.accept:
            lines = table_lines(selection.resource, lines, self.api.now)
        return Response(stream=lines)

    @staticmethod
    def _match(request: Request) -> str:
        match = request.query.get("resourceVersionMatch", "")
        if match and not request.query.get("resourceVersion"):
            raise bad_request(
                "resourceVersionMatch is forbidden unless resourceVersion is provided"
            )
        return match

    def _check_version(self, version: int) -> None:
        current = self.api.store.version
        if version > current:
            message = f"Too large resource version: {version}, current: {current}"
            causes = [
                {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
            ]
            raise ApiError(504, "Timeout", message, {"causes": causes, "retryAfterSeconds": 1})

    # Writing

    def _create(self, request: Request, target: Target) -> Response:
        body, resource = request.object(), target.resource
        entry = self.api.create(resource, target.namespace, body, dry_run=request.dry_run)
        return _object(entry, 201)

    def _put(self, request: Request, target: Target) -> Response:
        body = request.object()
        if target.subresource == "finalize":
            return self._finalize(target, body)
        entry = self.api.update(
            target.resource,
            target.key,
            body,
            subresource=target.subresource,
            dry_run=request.dry_run,
        )
        return _object(entry)

    def _finalize(self, target: Target, body: JsonObject) -> Response:
        finalizers = (body.get("spec") or {}).get("finalizers") or []

        def change(namespace: JsonObject) -> None:
            namespace["spec"]["finalizers"] = finalizers

        return _object(self.api.patch(NAMESPACES, target.key, change))

    def _patch(self, request: Request, target: Target) -> Response:
        patch = request.document()
        change = patch_function(request.content_type, patch)
        missing = self.api.store.find(target.resource, target.key) is None
        if request.content_type == APPLY and missing and not target.subresource:
            patch.setdefault("metadata", {}).setdefault("name", target.name)
            return self._create_applied(request, target, patch)
        entry = self.api.patch(
            target.resource,
            target.key,
            change,
            subresource=target.subresource,
            dry_run=request.dry_run,
        )
        return _object(entry)

    def _create_applied(self, request: Request, target: Target, body: JsonObject) -> Response:
        resource = target.resource
        entry = self.api.create(resource, target.namespace, body, dry_run=request.dry_run)
        return _object(entry, 201)

    def _delete(self, request: Request, target: Target) -> Response:
        options = _delete_options(request)
        dry_run = request.dry_run or bool(options.get("dryRun"))
        if not target.name:
            return self._delete_collection(request, target, options)
        entry, gone = self.api.delete(target.resource, target.key, options, dry_run=dry_run)
        if gone and not target.resource.returns_deleted:
            return _json(success(target.resource, target.name, entry.uid))
        return _object(entry)

    def _delete_collection(
        self, request: Request, target: Target, options: dict[str, Any]
    ) -> Response:
        if target.resource.namespaced and not target.namespace:
            raise method_not_allowed()
        labels, fields = (request.query.get(k, "") for k in ("labelSelector", "fieldSelector"))
        selection = Selection(
            resource=target.resource,
            namespace=target.namespace,
            matches=matcher(target.resource, labels, fields),
        )
        page = list_page(self.api.store, selection)
        for entry in page.entries:
            try:
                self.api.delete(target.resource, entry.key, options, dry_run=request.dry_run)
            except ApiError as error:
                if error.code != 404:
                    raise
        return Response(body=list_body(target.resource, page))

    # Subresources

    def _subresource(self, request: Request, target: Target) -> Response:
        api, key = self.api, target.key
        match target.subresource, request.method:
            case "eviction", "POST":
                return _json(evict(api, key, request.object(), dry_run=request.dry_run), 201)
            case "binding", "POST":
                node = (request.object().get("target") or {}).get("name")
                if not node:
                    raise bad_request("target.name: Required value")
                api.bind(key, str(node))
                return _json(success(), 201)
            case "token", "POST":
                api.store.get(target.resource, key)
                return _json({**request.object(), "status": {"token": self.token}}, 201)
            case "scale", "GET":
                return _json(get_scale(api, target.resource, key))
            case "scale", "PUT":
                return _json(set_scale(api, target.resource, key, lambda _: request.object()))
            case "scale", "PATCH":
                change = patch_function(request.content_type, request.document())
                return _json(set_scale(api, target.resource, key, change))
            case _:
                raise method_not_allowed()


def _delete_options(request: Request) -> dict[str, Any]:
    options = request.object()
    for name in ("propagationPolicy", "orphanDependents"):
        if name in request.query and name not in options:
            value = request.query[name]
            options[name] = value == "true" if name == "orphanDependents" else value
    if "gracePeriodSeconds" in request.query and "gracePeriodSeconds" not in options:
        options["gracePeriodSeconds"] = request.number("gracePeriodSeconds")
    return options
