"""Input files of `reconciler plan` as kubectl and the AWS CLI write them; the command itself."""

import io
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from reconciler.cli.main import run

Json = dict[str, Any]

CONFIG = """\
cluster: analytics
regions: [us-west-2, us-east-1]
default_sector: primary
sizes:
  std: {cpu: 4, memory: 16Gi, pods: 20, instance_types: [m5.xlarge],
        price_usd_per_hour: 0.2, spot_price_usd_per_hour: 0.1}
  big: {cpu: 16, memory: 64Gi, pods: 60, instance_types: [m5.4xlarge],
        price_usd_per_hour: 0.8, spot_price_usd_per_hour: 0.4}
sectors:
  primary:
    kind: memory
    fleets:
    - {size: std, max_capacity: 3}
    - {size: big}
  batch:
    kind: memory
    fleets:
    - {size: std, regions: [us-west-2]}
"""
NOW = "2026-01-31T12:00:00Z"


@dataclass(frozen=True)
class Answer:
    """What a run of the command left behind."""

    code: int
    out: str
    err: str

    @property
    def plan(self) -> Json:
        """The plan; the run must have succeeded."""
        assert (self.code, self.err) == (0, "")
        made: Json = json.loads(self.out)
        return made


class Desk:
    """A folder with input files, and the command to run over them."""

    def __init__(
        self, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.folder = folder
        self._capsys = capsys
        self._monkeypatch = monkeypatch
        self.write("sectors.yaml", CONFIG)

    def write(self, name: str, content: Any) -> str:
        """A file with text, bytes, or JSON of anything else; its path."""
        path = self.folder / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(path)

    def command(self, *args: str, stdin: bytes = b"") -> Answer:
        """Run `reconciler` in this process."""
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = run(args)
        captured = self._capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    def plan(self, *args: str, stdin: bytes = b"") -> Answer:
        """Run `reconciler plan` with the folder's config and a fixed clock."""
        config = str(self.folder / "sectors.yaml")
        return self.command("plan", "--config", config, "--now", NOW, *args, stdin=stdin)

    def plan_of(self, *objects: Json, aws: Json | None = None) -> Json:
        """The plan for Kubernetes objects in one List, and EC2's answers in one file."""
        args = ["--cluster", self.write("cluster.json", listing(*objects))]
        if aws is not None:
            args += ["--aws", self.write("aws.json", aws)]
        return self.plan(*args).plan


def listing(*objects: Json, kind: str = "List") -> Json:
    """A v1 List, or a typed one whose items name no kind."""
    if kind == "List":
        return {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    bare = [{k: v for k, v in o.items() if k not in {"kind", "apiVersion"}} for o in objects]
    return {"apiVersion": "v1", "kind": kind, "metadata": {"resourceVersion": "1"}, "items": bare}


def pod(
    name: str,
    *,
    cpu: str = "1",
    memory: str = "1Gi",
    node: str | None = None,
    spec: Mapping[str, Any] | None = None,
    **metadata: Any,
) -> Json:
    """A pod with one container; `spec` adds to its spec, keywords to its metadata."""
    container = {
        "name": "main",
        "image": "registry.example/app:1",
        "resources": {"requests": {"cpu": cpu, "memory": memory}},
    }
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": "rs",
        "uid": "u",
        "controller": True,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": f"uid-{name}",
            "ownerReferences": [owner],
            **metadata,
        },
        "spec": {
            "containers": [container],
            **({"nodeName": node} if node else {}),
            **(spec or {}),
        },
        "status": {"phase": "Running" if node else "Pending"},
    }


def node(
    name: str,
    *,
    fleet: str = "primary-std",
    cpu: str = "4",
    memory: str = "16Gi",
    zone: str = "us-west-2a",
    **metadata: Any,
) -> Json:
    """A Ready node of a fleet, launched an hour before the clock."""
    sector, size = fleet.split("-")
    amounts = {"cpu": cpu, "memory": memory, "pods": "20"}
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/zone": zone,
        "topology.kubernetes.io/region": "us-west-2",
        "node.kubernetes.io/instance-type": "m5.xlarge",
        "sector": sector,
        "fleet": fleet,
        "size": size,
        "kind": "memory",
        "lifecycle": "Ec2Spot",
    }
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-31T11:01:00Z"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "creationTimestamp": "2026-01-31T11:00:00Z",
            "labels": labels,
            **metadata,
        },
        "spec": {"providerID": f"aws:///{zone}/i-{name}"},
        "status": {"allocatable": amounts, "capacity": amounts, "conditions": [ready]},
    }


def fleet(name: str, target: int = 0, **changed: Any) -> Json:
    """An entry of describe-fleets."""
    sector = name.split("-", maxsplit=1)[0]
    return {
        "FleetId": f"fleet-{name}",
        "FleetState": "active",
        "ActivityStatus": "fulfilled",
        "CreateTime": "2026-01-01T00:00:00Z",
        "Type": "maintain",
        "FulfilledCapacity": float(target),
        "TargetCapacitySpecification": {"TotalTargetCapacity": target},
        "Tags": [
            {"Key": "cluster", "Value": "analytics"},
            {"Key": "fleet", "Value": name},
            {"Key": "sector", "Value": sector},
        ],
        **changed,
    }


def fleets(*entries: Json, region: str | None = None) -> Json:
    """A describe-fleets answer."""
    return {"Fleets": list(entries), **({"Region": region} if region else {})}


def instances(*members: tuple[str, str], state: str = "running") -> Json:
    """A describe-instances answer for (node, fleet) pairs."""
    return {
        "Reservations": [
            {
                "ReservationId": "r-1",
                "Instances": [
                    {
                        "InstanceId": f"i-{name}",
                        "InstanceType": "m5.xlarge",
                        "LaunchTime": "2026-01-31T11:00:00+00:00",
                        "State": {"Code": 16, "Name": state},
                        "Placement": {"AvailabilityZone": "us-west-2a"},
                        "InstanceLifecycle": "spot",
                        "Tags": [{"Key": "aws:ec2:fleet-id", "Value": f"fleet-{of}"}],
                    }
                    for name, of in members
                ],
            }
        ]
    }


ALL_FLEETS = fleets(fleet("primary-std"), fleet("primary-big"), fleet("batch-std"))
