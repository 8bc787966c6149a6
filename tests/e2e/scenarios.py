"""Random small clusters as Kubernetes objects, each sealed off from the others.

Every label value, topology domain and namespace carries the scenario's tag, and every pod under
test selects its scenario's nodes: thousands of scenarios share one control plane without seeing
each other. Topology keys under policies that look beyond the node selector are the scenario's own.
"""

from collections.abc import Callable, Mapping, Sequence
from random import Random  # noqa: TID251 - seeded by the test
from typing import Any

from tests.e2e import scenario_volumes
from tests.e2e.observing_scheduler import SCHEDULER_NAME
from tests.e2e.scenario import FINISHED, HOSTNAME, LEAVING, SCENARIO, ZONE, Body, Scenario

_EFFECTS = ("NoSchedule", "NoSchedule", "NoExecute", "PreferNoSchedule")
_GPU = "example.com/gpu"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def make_scenario(number: int, seed: int) -> Scenario:
    """The same numbers make the same scenario."""
    scenario = Scenario(number=number, rng=Random(f"{seed}/{number}"))
    teams = ("a", "b") if scenario.chance(40) else ("a",)
    scenario.namespaces = [
        {"metadata": {"name": f"{scenario.tag}-{t}", "labels": {"team": t, SCENARIO: scenario.tag}}}
        for t in teams
    ]
    scenario.nodes = [_node(scenario, i) for i in range(scenario.rng.randint(3, 6))]
    scenario.bound = [_bound(scenario, i) for i in range(scenario.rng.randint(0, 6))]
    scenario.probes = [_probe(scenario, i) for i in range(scenario.rng.randint(2, 4))]
    return scenario


def _node(scenario: Scenario, index: int) -> Body:
    rng, tag = scenario.rng, scenario.tag
    name = f"{tag}-n{index}"
    labels = {SCENARIO: tag, HOSTNAME: name, "kubernetes.io/os": "linux"}
    if not scenario.chance(10):
        labels[ZONE] = f"{tag}-{rng.choice('abc')}"
    if not scenario.chance(20):
        labels[scenario.rack] = rng.choice("12")
    if not scenario.chance(30):
        labels["disk"] = rng.choice(("ssd", "hdd"))
    if not scenario.chance(40):
        labels["generation"] = rng.choice(("1", "3", "5", "007", "2.5", "new"))
    resources = {
        "cpu": rng.choice(("800m", "2", "3", "3500m")),
        "memory": rng.choice(("2Gi", "4Gi", "6Gi", "2500M")),
        "ephemeral-storage": rng.choice(("1Gi", "10Gi", "10Gi")),
        "pods": rng.choice(("2", "5", "10", "10")),
    }
    if scenario.chance(25):
        resources[_GPU] = rng.choice(("0", "1", "2"))
    keys = rng.sample(("dedicated", "spot", "gpu"), rng.choice((0, 0, 0, 1, 1, 2)))
    taints: list[Body] = [
        {"key": key, "value": rng.choice(("", "on", "off")), "effect": rng.choice(_EFFECTS)}
        for key in keys
    ]
    spec: Body = {"taints": taints}
    if scenario.chance(7):
        spec["unschedulable"] = True
    status = {"allocatable": resources, "capacity": resources}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": status}


def _labels(scenario: Scenario) -> dict[str, str]:
    labels = {"app": scenario.app()}
    if scenario.chance(60):
        labels["tier"] = scenario.rng.choice(("front", "back"))
    if scenario.chance(30):
        labels["version"] = scenario.rng.choice("12")
    return labels


def _container(scenario: Scenario, name: str, scale: int) -> Body:
    rng = scenario.rng
    requests = {
        "cpu": f"{rng.choice((0, 100, 250, 500)) * scale}m",
        "memory": f"{rng.choice((0, 128, 300, 600)) * scale}Mi",
    }
    if scenario.chance(15):
        requests["ephemeral-storage"] = rng.choice(("100Mi", "900Mi", "2Gi"))
    resources: Body = {"requests": requests}
    if scenario.chance(12):
        resources["limits"] = {_GPU: "1"}
    elif scenario.chance(10):
        resources = {"limits": {"cpu": "400m", "memory": "256Mi"}}
    container: Body = {"name": name, "image": "registry/app:1", "resources": resources}
    if scenario.chance(20):
        container["ports"] = [_port(scenario)]
    return container


def _port(scenario: Scenario) -> Body:
    rng = scenario.rng
    port: Body = {"containerPort": 80, "hostPort": rng.choice((8080, 8081))}
    if scenario.chance(30):
        port["hostIP"] = rng.choice(("127.0.0.1", "10.0.0.1", "0.0.0.0"))  # noqa: S104 - data
    if scenario.chance(30):
        port["protocol"] = rng.choice(("UDP", "TCP"))
    return port


def _bound(scenario: Scenario, index: int) -> Body:
    """A pod that runs already; what it asks for need not fit."""
    rng = scenario.rng
    spec: Body = {
        "nodeName": rng.choice(scenario.nodes)["metadata"]["name"],
        "automountServiceAccountToken": False,
        "containers": [_container(scenario, "c", 1)],
        "tolerations": [{"operator": "Exists"}],
    }
    if scenario.chance(25):
        terms = [_pod_term(scenario) for _ in range(rng.choice((1, 1, 2)))]
        spec["affinity"] = {"podAntiAffinity": {_REQUIRED: terms}}
    metadata: Body = {"name": f"b{index}", "namespace": scenario.namespace()}
    metadata["labels"] = _labels(scenario)
    if scenario.chance(12):
        metadata["finalizers"] = [LEAVING]
    elif scenario.chance(10):
        metadata["annotations"] = {FINISHED: "true"}
    return {"metadata": metadata, "spec": spec}


def _pod_selector(scenario: Scenario) -> Body:
    app = {"key": "app", "operator": "In", "values": sorted({scenario.app(), scenario.app()})}
    extra = scenario.rng.choice(
        (
            {"key": "tier", "operator": "Exists"},
            {"key": "tier", "operator": "DoesNotExist"},
            {"key": "tier", "operator": "NotIn", "values": ["front"]},
        )
    )
    return scenario.rng.choice(
        (
            {"matchLabels": {"app": scenario.app()}},
            {"matchLabels": {"app": scenario.app()}},
            {"matchExpressions": [app]},
            {"matchExpressions": [app, extra]},
        )
    )


def _pod_term(scenario: Scenario) -> Body:
    term: Body = {"topologyKey": scenario.topology(), "labelSelector": _pod_selector(scenario)}
    if scenario.chance(20):
        term["namespaces"] = [f"{scenario.tag}-{scenario.rng.choice('ab')}"]
    if scenario.chance(20):
        labels = {SCENARIO: scenario.tag}
        team = {"team": scenario.rng.choice("ab")} if scenario.chance(60) else {}
        term["namespaceSelector"] = {"matchLabels": labels | team}
    elif scenario.chance(8):
        term["namespaceSelector"] = {}
    if scenario.chance(15):
        term[scenario.rng.choice(("matchLabelKeys", "mismatchLabelKeys"))] = ["version"]
    return term


# ---- pods under test --------------------------------------------------------------------------


def _probe(scenario: Scenario, index: int) -> Body:
    spec: Body = {
        "schedulerName": SCHEDULER_NAME,
        "automountServiceAccountToken": False,
        "nodeSelector": {SCENARIO: scenario.tag},
        "containers": [_container(scenario, "c", 1)],
    }
    metadata: Body = {"name": f"p{index}", "namespace": scenario.namespace()}
    metadata["labels"] = _labels(scenario)
    pod = {"metadata": metadata, "spec": spec}
    for feature in scenario.rng.sample(_FEATURES, scenario.rng.choice((1, 1, 2, 2, 3))):
        feature(scenario, pod)
    return pod


def _with_selector(scenario: Scenario, pod: Body) -> None:
    pod["spec"]["nodeSelector"]["disk"] = scenario.rng.choice(("ssd", "hdd", "tape"))


def _with_node_affinity(scenario: Scenario, pod: Body) -> None:
    terms = [_node_term(scenario) for _ in range(scenario.rng.choice((1, 1, 2)))]
    affinity = pod["spec"].setdefault("affinity", {})
    required = {"nodeSelectorTerms": terms}
    affinity.setdefault("nodeAffinity", {})[_REQUIRED] = required


def _node_term(scenario: Scenario) -> Body:
    rng = scenario.rng
    choices: Sequence[Body] = (
        {"key": "disk", "operator": "In", "values": ["ssd"]},
        {"key": "disk", "operator": "NotIn", "values": ["ssd"]},
        {"key": "disk", "operator": "Exists"},
        {"key": "disk", "operator": "DoesNotExist"},
        {"key": "generation", "operator": "Gt", "values": [rng.choice(("0", "3", "4"))]},
        {"key": "generation", "operator": "Lt", "values": [rng.choice(("4", "8", "0"))]},
        {"key": ZONE, "operator": "NotIn", "values": [f"{scenario.tag}-a"]},
    )
    term: Body = {}
    if not scenario.chance(10):
        term["matchExpressions"] = rng.sample(choices, rng.choice((1, 1, 2)))
    if scenario.chance(20):
        name = rng.choice(scenario.nodes)["metadata"]["name"]
        operator = rng.choice(("In", "NotIn"))
        term["matchFields"] = [{"key": "metadata.name", "operator": operator, "values": [name]}]
    return term


def _with_tolerations(scenario: Scenario, pod: Body) -> None:
    rng = scenario.rng
    choices: Sequence[Body] = (
        {"key": "dedicated", "operator": "Exists"},
        {"key": "dedicated", "operator": "Equal", "value": "on", "effect": "NoSchedule"},
        {"key": "spot", "value": "off"},
        {"key": "spot", "operator": "Exists", "effect": "NoExecute"},
        {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"},
        {"operator": "Exists", "effect": "NoExecute"},
        {"key": "gpu", "operator": "Exists"},
    )
    pod["spec"]["tolerations"] = rng.sample(choices, rng.randint(1, 4))


def _with_pod_affinity(scenario: Scenario, pod: Body) -> None:
    terms = [_pod_term(scenario) for _ in range(scenario.rng.choice((1, 1, 2)))]
    if scenario.chance(30):
        terms = [{"topologyKey": scenario.topology(), "labelSelector": _own(pod)}]
    affinity = pod["spec"].setdefault("affinity", {})
    affinity.setdefault("podAffinity", {})[_REQUIRED] = terms


def _own(pod: Body) -> Body:
    return {"matchLabels": {"app": pod["metadata"]["labels"]["app"]}}


def _with_pod_anti_affinity(scenario: Scenario, pod: Body) -> None:
    terms = [_pod_term(scenario) for _ in range(scenario.rng.choice((1, 1, 2)))]
    affinity = pod["spec"].setdefault("affinity", {})
    affinity.setdefault("podAntiAffinity", {})[_REQUIRED] = terms


def _with_spread(scenario: Scenario, pod: Body) -> None:
    rng = scenario.rng
    keys = rng.sample((ZONE, HOSTNAME, scenario.rack), rng.choice((1, 1, 2)))
    pod["spec"]["topologySpreadConstraints"] = [_constraint(scenario, pod, key) for key in keys]


def _constraint(scenario: Scenario, pod: Body, key: str) -> Body:
    rng = scenario.rng
    constraint: Body = {
        "topologyKey": key,
        "maxSkew": rng.choice((1, 1, 2)),
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": _own(pod) if scenario.chance(60) else _pod_selector(scenario),
    }
    if scenario.chance(25):
        constraint["minDomains"] = rng.choice((1, 2, 3, 4))
    if scenario.chance(20) and key == scenario.rack:
        constraint["nodeAffinityPolicy"] = "Ignore"
    if scenario.chance(30):
        constraint["nodeTaintsPolicy"] = rng.choice(("Honor", "Ignore"))
    if scenario.chance(20):
        constraint["matchLabelKeys"] = ["version"]
    if scenario.chance(10):
        constraint["whenUnsatisfiable"] = "ScheduleAnyway"
        constraint.pop("minDomains", None)
    return constraint


def _with_init_containers(scenario: Scenario, pod: Body) -> None:
    if "resources" in pod["spec"]:
        return  # which would have to be no less than all containers' together
    made = [
        _container(scenario, f"i{i}", scenario.rng.choice((1, 2)))
        for i in range(scenario.rng.randint(1, 3))
    ]
    for container in made:
        if scenario.chance(40):
            container["restartPolicy"] = "Always"
        else:
            container.pop("ports", None)
    pod["spec"]["initContainers"] = made


def _with_pod_level_resources(scenario: Scenario, pod: Body) -> None:
    requests = {"cpu": scenario.rng.choice(("1", "1600m")), "memory": "1500Mi"}
    for container in pod["spec"]["containers"]:
        container["resources"] = {}
    pod["spec"].pop("initContainers", None)
    pod["spec"]["resources"] = {"requests": requests}


def _with_ports(scenario: Scenario, pod: Body) -> None:
    pod["spec"]["containers"][0]["ports"] = [_port(scenario)]
    if scenario.chance(15):
        pod["spec"]["hostNetwork"] = True
        pod["spec"]["containers"][0]["ports"] = [{"containerPort": 8080, "hostPort": 8080}]


def _with_preferences(scenario: Scenario, pod: Body) -> None:
    """Soft terms, which refuse nothing."""
    affinity = pod["spec"].setdefault("affinity", {})
    soft = "preferredDuringSchedulingIgnoredDuringExecution"
    node = {"weight": 10, "preference": {"matchExpressions": [{"key": "no", "operator": "Exists"}]}}
    affinity.setdefault("nodeAffinity", {})[soft] = [node]
    for kind in ("podAffinity", "podAntiAffinity"):
        term = {"weight": 5, "podAffinityTerm": _pod_term(scenario)}
        affinity.setdefault(kind, {})[soft] = [term]


def _with_runtime_class(scenario: Scenario, pod: Body) -> None:
    """A runtime class adds overhead, and sometimes a node selector and tolerations."""
    name = f"{scenario.tag}-r{len(scenario.objects)}"
    overhead = {"podFixed": {"cpu": "700m", "memory": "600Mi"}}
    body: Body = {"metadata": {"name": name}, "handler": "runc", "overhead": overhead}
    if scenario.chance(40):
        toleration = {"key": "dedicated", "operator": "Exists"}
        body["scheduling"] = {"nodeSelector": {SCENARIO: scenario.tag}, "tolerations": [toleration]}
    scenario.objects.append(("/apis/node.k8s.io/v1/runtimeclasses", body))
    pod["spec"]["runtimeClassName"] = name


def _with_volumes(scenario: Scenario, pod: Body) -> None:
    scenario_volumes.add_volume(scenario, pod)


_FEATURES: Sequence[Callable[[Scenario, Body], None]] = (
    _with_selector,
    _with_node_affinity,
    _with_tolerations,
    _with_pod_affinity,
    _with_pod_anti_affinity,
    _with_spread,
    _with_spread,
    _with_init_containers,
    _with_pod_level_resources,
    _with_ports,
    _with_preferences,
    _with_runtime_class,
    _with_volumes,
)


def objects_in_order(scenario: Scenario) -> Sequence[Sequence[tuple[str, Mapping[str, Any]]]]:
    """Paths and bodies in waves; each wave may be created in any order."""
    names = [namespace["metadata"]["name"] for namespace in scenario.namespaces]
    account = {"metadata": {"name": "default"}}
    return (
        [("/api/v1/namespaces", namespace) for namespace in scenario.namespaces],
        [
            *((f"/api/v1/namespaces/{name}/serviceaccounts", account) for name in names),
            *(("/api/v1/nodes", node) for node in scenario.nodes),
        ],
        [*scenario.objects, *map(_pod_creation, scenario.bound)],
        [*map(_pod_creation, scenario.probes)],
    )


def _pod_creation(pod: Body) -> tuple[str, Body]:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods", pod
