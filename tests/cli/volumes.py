"""Claims, volumes and their classes as kubectl prints them."""

from typing import Any

from tests.cli.inputs import Json, node

EBS = "ebs.csi.aws.com"
CLAIMED: Json = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}
"""The spec of a pod with the claim `data`."""


def claim(name: str = "data", mode: str = "ReadWriteOnce", **spec: Any) -> Json:
    """A claim in the namespace of the pods."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "ns"},
        "spec": {"accessModes": [mode], "resources": {"requests": {"storage": "1Gi"}}, **spec},
    }


def volume(zone: str) -> Json:
    """An EBS volume in a zone."""
    line = {"key": f"topology.{EBS}/zone", "operator": "In", "values": [zone]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "pv"},
        "spec": {
            "csi": {"driver": EBS, "volumeHandle": "vol-1"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [line]}]}},
        },
    }


def storage_class(name: str = "gp3", mode: str = "WaitForFirstConsumer") -> Json:
    """A class of EBS volumes."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": EBS,
        "volumeBindingMode": mode,
    }


def attaching(limit: int) -> tuple[Json, Json]:
    """A cordoned node of the fleet whose driver says how many volumes a node attaches."""
    csi = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": "n1"},
        "spec": {"drivers": [{"name": EBS, "nodeID": "n1", "allocatable": {"count": limit}}]},
    }
    return cordoned(), csi


def cordoned(name: str = "n1", zone: str = "us-west-2a") -> Json:
    """A node that takes nothing new."""
    made = node(name, zone=zone)
    made["spec"]["unschedulable"] = True
    return made


def mounting(count: int) -> Json:
    """The spec of a pod with so many claims."""
    return {
        "volumes": [
            {"name": f"v{i}", "persistentVolumeClaim": {"claimName": f"c{i}"}} for i in range(count)
        ]
    }
