"""Pods in the API server's own encoding, and copies of them under other names.

What clients write through the API server lies in etcd as protobuf, which it reads back many times
faster than JSON: thousands of pods at one moment are to cost it what they would cost it then.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from kubernetes import config

_PROTOBUF = "application/vnd.kubernetes.protobuf"
_UID = re.compile(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIMEOUT_SECONDS = 60


@dataclass(frozen=True, slots=True)
class EncodedPod:
    """A pod as etcd has it; the first uid in it is its own."""

    body: bytes
    name: str
    node: str = ""
    """Empty: it is not bound."""

    def copy(self, name: str, uid: str, node: str = "") -> bytes:
        """The same pod under another name, and bound to another node.

        Raises:
            ValueError: A name is not as long as the one that it replaces: lengths are encoded.
        """
        if (len(name), len(node)) != (len(self.name), len(self.node)):
            raise ValueError(f"{name} {node}: not as long as {self.name} {self.node}")
        found = self.body.replace(self.name.encode(), name.encode(), 1)
        found = _UID.sub(uid.encode(), found, count=1)
        return found.replace(self.node.encode(), node.encode(), 1) if node else found


class Encoder:
    """Has pods encoded by an API server.

    Args:
        kubeconfig: Of its administrator.
        url: Its address.
    """

    def __init__(self, kubeconfig: Path, url: str) -> None:
        make: Any = config.new_client_from_config
        self._client: Any = make(config_file=str(kubeconfig))
        self._url = url

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def created(self, path: str, body: Mapping[str, Any]) -> EncodedPod:
        """What would be stored if the pod were created; nothing is."""
        found = self._ask("POST", f"{path}?dryRun=All", dict(body))
        return EncodedPod(found, body["metadata"]["name"])

    def stored(self, path: str, body: Mapping[str, Any]) -> EncodedPod:
        """A pod that is there, bound."""
        metadata, spec = body["metadata"], body["spec"]
        found = self._ask("GET", f"{path}/{metadata['name']}", None)
        return EncodedPod(found, metadata["name"], spec["nodeName"])

    def _ask(self, method: str, path: str, body: Any) -> bytes:
        headers = {"Accept": _PROTOBUF, "Content-Type": "application/json"}
        reply = self._client.call_api(
            method, self._url + path, headers, body, _request_timeout=_TIMEOUT_SECONDS
        )
        found: bytes = reply.response.data
        if reply.status not in {200, 201}:
            raise RuntimeError(f"{method} {path}: {reply.status} {found[:300]!r}")
        return found
