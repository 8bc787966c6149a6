"""A control plane that writes down every request: who asked for what, when, and what came of it."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from reconciler.sandbox.control_plane.plane import ControlPlane
from tests.growing import complete_lines

_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "rules": [{"level": "Metadata"}],
    "omitStages": ["RequestReceived"],  # of watches their begin stays, and their end
}
_CREDENTIAL = "authentication.kubernetes.io/credential-id"
CHANGING = frozenset({"create", "update", "patch", "delete", "deletecollection"})


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Asked:
    """One request, as authorisation sees it."""

    verb: str
    group: str
    resource: str
    """With its subresource: `pods/eviction`."""
    namespace: str
    name: str

    @property
    def changing(self) -> bool:
        """Whether it may change something."""
        return self.verb in CHANGING


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A request and its answer."""

    at: datetime
    """When it arrived."""
    user: str
    credential: str
    """Which token or certificate it came with."""
    asked: Asked
    status: int


class AuditedPlane(ControlPlane):
    """A control plane with an audit log."""

    def _spawn(self, name: str, *flags: str, program: str = "") -> None:
        if name == "kube-apiserver":
            policy = self._directory / "audit-policy.json"
            policy.write_text(json.dumps(_POLICY))
            flags = (
                *flags,
                f"--audit-policy-file={policy}",
                f"--audit-log-path={self.audit_log}",
            )
        super()._spawn(name, *flags, program=program)

    @property
    def audit_log(self) -> Path:
        """One JSON object per line; a watch has two."""
        return self._directory / "audit.jsonl"

    def entries(self, user: str = "") -> Iterator[Entry]:
        """Requests so far, in order of their answers; of one user."""
        for line in complete_lines(self.audit_log):
            event = json.loads(line)
            if (not user or event["user"]["username"] == user) and "objectRef" in event:
                yield _entry(event)


def _entry(event: dict[str, Any]) -> Entry:
    ref, user = event["objectRef"], event["user"]
    resource = ref["resource"] + (f"/{ref['subresource']}" if "subresource" in ref else "")
    extra = user.get("extra") or {}
    return Entry(
        at=datetime.fromisoformat(event["requestReceivedTimestamp"]),
        user=user["username"],
        credential=next(iter(extra.get(_CREDENTIAL) or [""])),
        asked=Asked(
            verb=event["verb"],
            group=ref.get("apiGroup", ""),
            resource=resource,
            namespace=ref.get("namespace", ""),
            name=ref.get("name", ""),
        ),
        status=event.get("responseStatus", {}).get("code", 0),
    )
