"""Claims of pods under test: bound and zonal, waiting for a consumer, local, shared, missing."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.e2e.scenario import ZONE, Body, Scenario

DRIVER = "ebs.csi.aws.com"
_CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
_CSI_NODES = "/apis/storage.k8s.io/v1/csinodes"


def add_volume(scenario: Scenario, pod: Body) -> None:
    """Give the pod one or two claims, each of a random kind."""
    if not any(path == _CLASSES for path, _ in scenario.objects):
        _add_classes(scenario)
    for _ in range(scenario.rng.choice((1, 1, 2))):
        makers = (_zonal, _zonal, _labelled, _waiting, _chosen, _local, _missing, _once, _shared)
        name = scenario.rng.choice(makers)(scenario, pod["metadata"]["namespace"])
        _mount(pod, name)
    if scenario.bound and scenario.chance(50):
        user = scenario.rng.choice(scenario.bound)
        _mount(user, _zonal(scenario, user["metadata"]["namespace"]))


def _add_classes(scenario: Scenario) -> None:
    """Two storage classes, and attach limits on some nodes."""
    waiting: Body = {"metadata": {"name": f"{scenario.tag}-wait"}, "provisioner": DRIVER}
    waiting["volumeBindingMode"] = "WaitForFirstConsumer"
    if scenario.chance(50):
        zones = [f"{scenario.tag}-{scenario.rng.choice('abc')}"]
        expression = {"key": ZONE, "values": zones}
        waiting["allowedTopologies"] = [{"matchLabelExpressions": [expression]}]
    local = {
        "metadata": {"name": f"{scenario.tag}-local"},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    scenario.objects += [(_CLASSES, waiting), (_CLASSES, local)]
    for node in scenario.nodes:
        if scenario.chance(60):
            name = node["metadata"]["name"]
            driver: Body = {"name": DRIVER, "nodeID": name, "topologyKeys": []}
            if scenario.chance(80):
                driver["allocatable"] = {"count": scenario.rng.choice((1, 1, 2))}
            body = {"metadata": {"name": name}, "spec": {"drivers": [driver]}}
            scenario.objects.append((_CSI_NODES, body))


def _mount(pod: Body, claim: str) -> None:
    volumes = pod["spec"].setdefault("volumes", [])
    volumes.append({"name": f"v{len(volumes)}", "persistentVolumeClaim": {"claimName": claim}})


def _claim(
    scenario: Scenario,
    namespace: str,
    *,
    storage_class: str = "",
    volume: str = "",
    mode: str = "ReadWriteOnce",
    **more: Any,
) -> str:
    name = f"c{len(scenario.objects)}"
    spec: Body = {
        "accessModes": [mode],
        "storageClassName": storage_class,
        "resources": {"requests": {"storage": more.pop("size", "1Gi")}},
    }
    if volume:
        spec["volumeName"] = volume
    if "selector" in more:
        spec["selector"] = {"matchLabels": more["selector"]}
    path = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"
    metadata = {"name": name, "annotations": more.get("annotations", {})}
    scenario.objects.append((path, {"metadata": metadata, "spec": spec}))
    return name


def _volume(
    scenario: Scenario,
    terms: Sequence[Body],
    *,
    labels: Mapping[str, str] | None = None,
    storage_class: str = "",
    mode: str = "ReadWriteOnce",
    size: str = "1Gi",
) -> str:
    name = f"{scenario.tag}-v{len(scenario.objects)}"
    spec: Body = {
        "accessModes": [mode],
        "capacity": {"storage": size},
        "storageClassName": storage_class,
        "persistentVolumeReclaimPolicy": "Retain",
    }
    if storage_class:
        spec["local"] = {"path": "/data"}
    else:
        spec["csi"] = {"driver": DRIVER, "volumeHandle": name}
    if terms:
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": list(terms)}}
    metadata = {"name": name, "labels": dict(labels or {})}
    scenario.objects.append(("/api/v1/persistentvolumes", {"metadata": metadata, "spec": spec}))
    return name


def _bind(scenario: Scenario, volume: str, namespace: str, mode: str = "ReadWriteOnce") -> str:
    """A claim and a volume that name each other: the controller only has to agree."""
    body = next(b for _, b in scenario.objects if b["metadata"]["name"] == volume)
    claim = _claim(scenario, namespace, volume=volume, mode=mode)
    body["spec"]["claimRef"] = {"namespace": namespace, "name": claim}
    return claim


def _in_zone(scenario: Scenario) -> Body:
    zone = f"{scenario.tag}-{scenario.rng.choice('abc')}"
    return {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}


def _zonal(scenario: Scenario, namespace: str) -> str:
    return _bind(scenario, _volume(scenario, [_in_zone(scenario)]), namespace)


def _labelled(scenario: Scenario, namespace: str) -> str:
    """A volume that says its zone by label, as those of the in-tree plugin do."""
    labels = {ZONE: f"{scenario.tag}-{scenario.rng.choice('abc')}"}
    return _bind(scenario, _volume(scenario, [], labels=labels), namespace)


def _once(scenario: Scenario, namespace: str) -> str:
    """ReadWriteOncePod, perhaps in use."""
    mode = "ReadWriteOncePod"
    claim = _bind(scenario, _volume(scenario, [], mode=mode), namespace, mode)
    users = [pod for pod in scenario.bound if pod["metadata"]["namespace"] == namespace]
    if users and scenario.chance(60):
        _mount(scenario.rng.choice(users), claim)
    return claim


def _waiting(scenario: Scenario, namespace: str) -> str:
    return _claim(scenario, namespace, storage_class=f"{scenario.tag}-wait")


def _chosen(scenario: Scenario, namespace: str) -> str:
    """Kube-scheduler has chosen a node for it and waits for the driver, which is not there."""
    node = scenario.rng.choice(scenario.nodes)["metadata"]["name"]
    chosen = {"volume.kubernetes.io/selected-node": node}
    return _claim(scenario, namespace, storage_class=f"{scenario.tag}-wait", annotations=chosen)


def _shared(scenario: Scenario, namespace: str) -> str:
    """A zonal volume that pods on nodes use too, perhaps several of them."""
    claim = _zonal(scenario, namespace)
    for pod in scenario.bound:
        if pod["metadata"]["namespace"] == namespace and scenario.chance(50):
            _mount(pod, claim)
    return claim


def _local(scenario: Scenario, namespace: str) -> str:
    storage_class = f"{scenario.tag}-local"
    for _ in range(scenario.rng.choice((0, 1, 2))):
        name = scenario.rng.choice(scenario.nodes)["metadata"]["name"]
        host = {"key": "kubernetes.io/hostname", "operator": "In", "values": [name]}
        _volume(
            scenario,
            [{"matchExpressions": [host]}],
            storage_class=storage_class,
            size=scenario.rng.choice(("1Gi", "2Gi")),
            labels={"tier": scenario.rng.choice(("fast", "slow"))},
        )
    more: Body = {"size": scenario.rng.choice(("1Gi", "1Gi", "2Gi"))}
    if scenario.chance(30):
        more["selector"] = {"tier": "fast"}
    return _claim(scenario, namespace, storage_class=storage_class, **more)


def _missing(scenario: Scenario, namespace: str) -> str:
    return "nowhere"
