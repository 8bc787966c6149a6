"""What clients read to learn which resources exist: /api, /apis, OpenAPI, /version."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from reconciler.sandbox.cluster.objects.resources import RESOURCES, Resource
from reconciler.sandbox.cluster.objects.status import JsonObject

_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
_REVIEWS = (
    ("authorization.k8s.io", "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
    ("authorization.k8s.io", "subjectaccessreviews", "SubjectAccessReview"),
    ("authentication.k8s.io", "selfsubjectreviews", "SelfSubjectReview"),
)
"""Types that can only be created, and are answered but not stored."""
REVIEW_KINDS = {(group, plural): kind for group, plural, kind in _REVIEWS}

VERSION: JsonObject = {
    "major": "1",
    "minor": "36",
    "gitVersion": "v1.36.3+sandbox",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "none",
    "compiler": "none",
    "platform": "linux/amd64",
}
"""The minor version whose behaviour the sandbox follows."""


def _groups() -> dict[str, str]:
    """Return API groups and their version, in discovery order, without the core group."""
    found = {r.group: r.version for r in RESOURCES if r.group}
    return found | {group: "v1" for group, _, _ in _REVIEWS}


def core_versions() -> JsonObject:
    """Return the answer of /api."""
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1"}],
    }


def _group(name: str, version: str) -> JsonObject:
    entry = {"groupVersion": f"{name}/{version}", "version": version}
    return {"name": name, "versions": [entry], "preferredVersion": entry}


def group_list() -> JsonObject:
    """Return the answer of /apis."""
    groups = [_group(name, version) for name, version in _groups().items()]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def group(name: str) -> JsonObject | None:
    """Return the answer of /apis/GROUP; None if there is no such group."""
    version = _groups().get(name)
    if version is None:
        return None
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, version)}


def _described(resource: Resource) -> list[JsonObject]:
    main: JsonObject = {
        "name": resource.plural,
        "singularName": resource.kind.lower(),
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": _VERBS,
    }
    if resource.short_names:
        main["shortNames"] = list(resource.short_names)
    if resource.categories:
        main["categories"] = list(resource.categories)
    return [main, *(_subresource(resource, name) for name in sorted(resource.subresources))]


def _subresource(resource: Resource, name: str) -> JsonObject:
    foreign = {
        "scale": ("autoscaling", "v1", "Scale", ["get", "patch", "update"]),
        "eviction": ("policy", "v1", "Eviction", ["create"]),
        "binding": ("", "v1", "Binding", ["create"]),
        "token": ("authentication.k8s.io", "v1", "TokenRequest", ["create"]),
    }
    body: JsonObject = {
        "name": f"{resource.plural}/{name}",
        "singularName": "",
        "namespaced": resource.namespaced,
    }
    if name not in foreign:
        return {**body, "kind": resource.kind, "verbs": ["get", "patch", "update"]}
    group_name, version, kind, verbs = foreign[name]
    if group_name:
        body |= {"group": group_name, "version": version}
    return {**body, "kind": kind, "verbs": verbs}


@lru_cache(maxsize=64)
def resource_list(group_name: str, version: str) -> JsonObject | None:
    """Return the answer of /api/v1 or /apis/GROUP/VERSION; None if there is no such version."""
    members = [r for r in RESOURCES if (r.group, r.version) == (group_name, version)]
    listed = [line for resource in members for line in _described(resource)]
    listed += [
        {"name": plural, "singularName": "", "namespaced": False, "kind": kind, "verbs": ["create"]}
        for group, plural, kind in _REVIEWS
        if (group, "v1") == (group_name, version)
    ]
    if not listed:
        return None
    group_version = f"{group_name}/{version}" if group_name else version
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": group_version,
        "resources": listed,
    }


_PATCH_PARAMETERS = [
    {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
    for name in ("dryRun", "fieldManager", "fieldValidation", "force")
]
"""kubectl looks for these on PATCH before it uses them."""


def _paths(resource: Resource) -> JsonObject:
    prefix = "/apis/" if resource.group else "/api/"
    middle = "/namespaces/{namespace}" if resource.namespaced else ""
    path = f"{prefix}{resource.group_version}{middle}/{resource.plural}/{{name}}"
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    operation: JsonObject = {
        "operationId": f"patch{resource.kind}",
        "parameters": _PATCH_PARAMETERS,
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": "patch",
        "x-kubernetes-group-version-kind": kind,
    }
    return {path: {"patch": operation}}


def _all_paths(members: list[Resource]) -> JsonObject:
    paths: JsonObject = {}
    for resource in members:
        paths |= _paths(resource)
    return paths


def openapi_v2() -> JsonObject:
    """Return the answer of /openapi/v2: only paths, no schemas."""
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": VERSION["gitVersion"]},
        "paths": _all_paths(list(RESOURCES)),
        "definitions": {},
    }


OPENAPI_V2_PROTOBUF = b"\x0a\x032.0\x12\x0e\x0a\x0aKubernetes\x12\x00\x42\x00"
"""/openapi/v2 as kubectl asks for it, where OpenAPI v3 has no answer (for a `List`): no paths.

A Document of gnostic's openapi.v2: `swagger`, `info` with `title` and `version`, `paths`. kubectl
does not validate what it does not describe; the server does, when it is created.
"""
OPENAPI_V2_PROTOBUF_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"


def openapi_v3_index() -> JsonObject:
    """Return the answer of /openapi/v3: the addresses of the group versions' documents."""
    versions = {(r.group, r.version) for r in RESOURCES}
    names = sorted(f"apis/{group}/{version}" if group else "api/v1" for group, version in versions)
    return {"paths": {name: {"serverRelativeURL": f"/openapi/v3/{name}"} for name in names}}


def openapi_v3(name: str) -> JsonObject | None:
    """Return the answer of /openapi/v3/NAME; None if there is no such group version."""
    prefix, _, group_version = name.partition("/")
    members: list[Resource] = [
        r
        for r in RESOURCES
        if r.group_version == group_version and ("apis" if r.group else "api") == prefix
    ]
    if not members:
        return None
    info: dict[str, Any] = {"title": "Kubernetes", "version": VERSION["gitVersion"]}
    return {"openapi": "3.0.0", "info": info, "paths": _all_paths(members), "components": {}}


_FIXED: dict[tuple[str, ...], Callable[[], JsonObject]] = {
    ("version",): lambda: VERSION,
    ("api",): core_versions,
    ("apis",): group_list,
    ("openapi", "v2"): openapi_v2,
    ("openapi", "v3"): openapi_v3_index,
}


def document(path: tuple[str, ...]) -> JsonObject | None:
    """Return the discovery document at a path; None when there is none."""
    if path in _FIXED:
        return _FIXED[path]()
    match path:
        case ("api", version):
            return resource_list("", version)
        case ("apis", group_name):
            return group(group_name)
        case ("apis", group_name, version):
            return resource_list(group_name, version)
        case ("openapi", "v3", *rest):
            return openapi_v3("/".join(rest))
        case _:
            return None
