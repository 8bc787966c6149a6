"""Calls the control API of the simulated cluster from another process."""

import base64
import ssl
from collections.abc import Mapping, Sequence
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from reconciler.sandbox.control_api import TIMEOUT_SECONDS, ControlApi
from reconciler.sandbox.faults.kubernetes import KubernetesFaults
from reconciler.sandbox.faults.script import to_document


class KubeControlClient:
    """Asks the control API of the cluster that a kubeconfig of the sandbox names.

    Every method raises `Unavailable` when no server answers there and `InputError` when the API
    refuses what was asked.
    """

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
        cluster = config["clusters"][0]["cluster"]
        pem = base64.b64decode(cluster["certificate-authority-data"]).decode()
        context = ssl.create_default_context(cadata=pem)
        netloc = urlsplit(cluster["server"]).netloc
        self._api = ControlApi(
            cluster["server"],
            lambda: HTTPSConnection(netloc, timeout=TIMEOUT_SECONDS, context=context),
            {"Authorization": f"Bearer {config['users'][0]['user']['token']}"},
        )

    def put_faults(self, faults: KubernetesFaults, seed: int = 0) -> None:
        """Put faults in force, in addition to existing ones."""
        self._api.ask("POST", "faults", body={"seed": seed, **to_document(faults)})

    def faults(self) -> Sequence[Mapping[str, Any]]:
        """Return the faults in force, with a script's keys, and how often each was `shown`."""
        return list(self._api.ask("GET", "faults")["requests"])

    def clear_faults(self) -> None:
        """Remove all faults."""
        self._api.ask("DELETE", "faults")

    def calls(self, **wanted: str) -> Sequence[Mapping[str, Any]]:
        """Return requests that match `verb`, `resource`, `mutating`, a part of `user_agent`."""
        return list(self._api.ask("GET", "calls", query=wanted)["calls"])

    def call_counts(self, **wanted: str) -> Mapping[str, int]:
        """Return the number of such requests per `verb resource`."""
        return dict(self._api.ask("GET", "calls", query=wanted)["counts"])

    def forget_calls(self) -> None:
        """Clear the log of requests."""
        self._api.ask("DELETE", "calls")
