"""One config with every text that people choose, and what an attacker would choose."""

from collections.abc import Iterator
from typing import Any

import yaml

from tests.properties.rendering.configs import CODE, Document

PAYLOADS = (
    *CODE,
    "",
    " ",
    "../../../etc/passwd",
    "/etc/passwd",
    "..",
    ".git/config",
    "a/../../b",
    "x" * 100_000,
    "\x00",
    "\x1b[31mred\x07",
    "\ud800",
    "-rf",
    "--backend-config=x",
    "a\nb: c\n- d",
    "!!python/object/apply:os.system [id]",
    "&a *a",
    "aws:reserved",
    "null",
    "1e999999",
)
BASE: Document = {
    "cluster": "analytics",
    "regions": ["us-west-2"],
    "sizes": {"own": {"cpu": "2", "memory": "16Gi", "instance_types": ["r5.large"]}},
    "terraform": {
        "ami": "ami-0aa",
        "security_group_id": "sg-0aa",
        "private_subnet_ids": {"us-west-2a": "subnet-0aa"},
        "ssh_key_name": "key",
        "instance_profile_name": "node",
        "ebs_kms_key_id": "arn:aws:kms:us-west-2:123456789012:key/a-b",
        "cluster_endpoint": "https://a.example",
        "cluster_ca": "YQ==",
        "service_cidr": "10.0.0.0/16",
        "kube_reserved": {"cpu": "1"},
        "node_labels": {"tier": "x"},
        "node_taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}],
        "tags": {"team": "data"},
        "backend": {
            "bucket": "state",
            "key": "a/terraform.tfstate",
            "region": "us-west-2",
            "kms_key_id": "alias/k",
            "endpoint": "https://s3.example",
        },
    },
    "sectors": {
        "primary": {
            "kind": "memory",
            "labels": {"tier": "y"},
            "fleets": [
                {
                    "size": "own",
                    "zone": "us-west-2a",
                    "instance_types": ["r5.large"],
                    "labels": {"team": "z"},
                    "taints": [{"key": "c", "value": "d", "effect": "NoExecute"}],
                    "terraform": {"tags": {"unit": "u"}},
                }
            ],
        }
    },
}


def places_of(node: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every text of the document, and every key that people choose, as paths."""
    if isinstance(node, dict):
        for key, value in node.items():
            if path and path[-1] in _FREE_KEYS:
                yield (*path, key, "<key>")
            yield from places_of(value, (*path, key))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from places_of(value, (*path, index))
    elif isinstance(node, str):
        yield path


_FREE_KEYS = {
    "sectors",
    "sizes",
    "tags",
    "labels",
    "node_labels",
    "private_subnet_ids",
    "kube_reserved",
}


def _with(node: Any, path: tuple[str | int, ...], payload: str) -> Any:
    """A copy of the document with one text, or one key, replaced."""
    if not path:
        return payload
    if path[1:] == ("<key>",):
        return {payload if key == path[0] else key: value for key, value in node.items()}
    if isinstance(node, dict):
        return {k: _with(v, path[1:], payload) if k == path[0] else v for k, v in node.items()}
    return [_with(v, path[1:], payload) if i == path[0] else v for i, v in enumerate(node)]


def hostile_documents() -> list[tuple[tuple[str | int, ...], str, str]]:
    """Place, payload and YAML of every hostile config."""
    places = list(places_of(BASE))
    return [
        # ASCII only, so that what YAML cannot hold as it is comes as an escape.
        (place, payload, yaml.safe_dump(_with(BASE, place, payload), sort_keys=False))
        for payload in PAYLOADS
        for place in places
    ]
