"""The kubeconfig of a sandbox cluster."""

import base64
import os
from pathlib import Path

import yaml

NAME = "sandbox"


def kubeconfig_text(url: str, token: str, certificate: bytes) -> str:
    """Return a kubeconfig for one cluster, with its certificate (PEM) and a bearer token."""
    cluster = {
        "server": url,
        "certificate-authority-data": base64.b64encode(certificate).decode(),
    }
    body = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": NAME,
        "clusters": [{"name": NAME, "cluster": cluster}],
        "users": [{"name": NAME, "user": {"token": token}}],
        "contexts": [
            {"name": NAME, "context": {"cluster": NAME, "user": NAME, "namespace": "default"}}
        ],
    }
    return yaml.safe_dump(body, sort_keys=False)


def write_kubeconfig(path: Path, url: str, token: str, certificate: bytes) -> None:
    """Write it so that only its owner can read it: the token is in it."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(kubeconfig_text(url, token, certificate))
