"""The rights of install.yaml, one by one: what RBAC grants, and a request that needs each."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from reconciler.adapters.kubernetes import Transport
from tests.e2e.audited import Asked
from tests.e2e.installed import NAMESPACE

_VERSIONS = {
    "": "/api/v1",
    "apps": "/apis/apps/v1",
    "policy": "/apis/policy/v1",
    "storage.k8s.io": "/apis/storage.k8s.io/v1",
    "coordination.k8s.io": "/apis/coordination.k8s.io/v1",
}
_NAMESPACED = frozenset({"pods", "events", "leases"})
_MERGE = "application/merge-patch+json"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Right:
    """One verb on one resource, of one name where the rule says so."""

    role: str
    """`ClusterRole` or `Role`, the latter for the install's namespace alone."""
    verb: str
    group: str
    resource: str
    name: str = ""

    def covers(self, asked: Asked) -> bool:
        """Whether a request needs this right (no two rights of ours cover the same)."""
        same = (self.verb, self.group, self.resource) == (asked.verb, asked.group, asked.resource)
        placed = self.role == "ClusterRole" or asked.namespace == NAMESPACE
        return same and placed and self.name in {"", asked.name}

    def rule(self) -> dict[str, Any]:
        """As a rule of its role."""
        names = {"resourceNames": [self.name]} if self.name else {}
        return {
            "apiGroups": [self.group],
            "resources": [self.resource],
            "verbs": [self.verb],
            **names,
        }

    def __str__(self) -> str:
        """A line of the table."""
        name = f" {self.name}" if self.name else ""
        group = f".{self.group}" if self.group else ""
        return f"{self.role:12} {self.verb:7} {self.resource}{group}{name}"


def rights_of(objects: Iterable[dict[str, Any]]) -> list[Right]:
    """Everything that the roles among the objects grant, one by one."""
    return sorted(
        Right(role=each["kind"], verb=verb, group=group, resource=resource, name=name)
        for each in objects
        if each["kind"] in {"ClusterRole", "Role"}
        for rule in each["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames", [""])
    )


def status_of(account: Transport, right: Right) -> int:
    """The answer to a request that needs exactly this right, and harms nothing: 403 without it."""
    resource, _, subresource = right.resource.partition("/")
    base = _VERSIONS[right.group]
    name = right.name or "nobody"
    in_namespace = right.role == "Role"
    if right.verb in {"list", "watch"}:
        query: dict[str, Any] = {"limit": "1"}
        if right.verb == "watch":
            query = {"watch": "1", "timeoutSeconds": "1"}
        if right.name:
            query["fieldSelector"] = f"metadata.name={right.name}"
        space = f"/namespaces/{NAMESPACE}" if in_namespace else ""
        return account.request("GET", f"{base}{space}/{resource}", query=query).status
    space = f"/namespaces/{NAMESPACE}" if resource in _NAMESPACED else ""
    path = f"{base}{space}/{resource}"
    if right.verb == "create":
        if subresource:
            path += f"/{name}/{subresource}"
        # Without a name the object is refused after authorisation, and none is made.
        return account.request("POST", path, body={"metadata": {}}).status
    if right.verb == "patch":
        body = {"metadata": {"labels": {"app.kubernetes.io/checked": "yes"}}}
        return account.request("PATCH", f"{path}/{name}", body=body, content_type=_MERGE).status
    method = {"get": "GET", "delete": "DELETE"}[right.verb]
    return account.request(method, f"{path}/{name}").status
