"""What one tenant may write to slow planning down for all others (`hostile`).

Every shape is a list of objects as the API server would admit them, at sizes that double: read
and planned together with the pods of a tenant who does nothing of the kind.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from msgspec.json import encode

from reconciler.model.snapshot import Snapshot
from reconciler.planner.settings import PlannerSettings
from reconciler.records.kubernetes.documents import RawObject
from reconciler.records.kubernetes.state import decode_cluster
from tests.benchmarks import clusters, hostile_lines
from tests.benchmarks.hostile_pods import (
    HOSTILE,
    NODES,
    PEACEFUL,
    Json,
    anti,
    bound,
    near,
    node_affinity,
    pod,
    ports_of,
    preferring,
    requests_of,
    spread,
    term,
    volume_of,
)
from tests.builders import ZONE

_GROUPS = {
    "DaemonSet": "apps/v1",
    "PodDisruptionBudget": "policy/v1",
    "StorageClass": "storage.k8s.io/v1",
}


def _one_spread(count: int) -> list[Json]:
    return [pod("p", {"topologySpreadConstraints": [spread(f"k/{i}") for i in range(count)]})]


def _one_extended(count: int) -> list[Json]:
    return [pod("p", requests_of({f"example.com/r{i}": "1" for i in range(count)}))]


def _one_ports(count: int) -> list[Json]:
    return [pod("p", ports_of(*range(1024, 1024 + count)))]


def _spreads(count: int) -> list[Json]:
    """Pods with as many constraints of their own as one may have and still be planned."""
    return [
        pod(f"p{i}", {"topologySpreadConstraints": [spread(f"k/{i}-{j}") for j in range(16)]})
        for i in range(count // 16)
    ]


def _zone_spreads(count: int) -> list[Json]:
    """The same by zone, each pod with a label of its own."""
    return [
        pod(
            f"p{i}",
            {"topologySpreadConstraints": [spread(ZONE, **{f"l{i}": "x"})]},
            **{f"l{i}": "x"},
        )
        for i in range(count)
    ]


def _selectors(count: int) -> list[Json]:
    return [pod(f"p{i}", {"nodeSelector": {f"example.com/s{i}": "x"}}) for i in range(count)]


def _not_selectors(count: int) -> list[Json]:
    """Node affinity that holds everywhere, another one for each pod."""
    return [
        pod(f"p{i}", node_affinity({"key": f"example.com/s{i}", "operator": "DoesNotExist"}))
        for i in range(count)
    ]


def _named_nodes(count: int) -> list[Json]:
    return [
        pod(
            f"p{i}",
            node_affinity(
                {"key": "metadata.name", "operator": "NotIn", "values": [f"n{i}"]}, fields=True
            ),
        )
        for i in range(count)
    ]


def _topology_keys(count: int) -> list[Json]:
    return [
        pod(f"p{i}", {"topologySpreadConstraints": [spread(f"example.com/k{i}")]})
        for i in range(count)
    ]


def _extended(count: int) -> list[Json]:
    return [pod(f"p{i}", requests_of({f"example.com/r{i}": "1"})) for i in range(count)]


def _host_ports(count: int) -> list[Json]:
    return [pod(f"p{i}", ports_of(1024 + i)) for i in range(count)]


def _anti_affinity(count: int) -> list[Json]:
    """Terms without a label to look them up by."""
    return [pod(f"p{i}", anti(term(f"l{i}", "Exists")), **{f"l{i}": "x"}) for i in range(count)]


def _anti_everything(count: int) -> list[Json]:
    """Each pod keeps away from all but its own kind."""
    return [pod(f"p{i}", anti(term("app", "NotIn", f"a{i}")), app=f"a{i}") for i in range(count)]


def _chain(count: int) -> list[Json]:
    return [pod(f"p{i}", near(term("app", "In", f"a{i + 1}")), app=f"a{i}") for i in range(count)]


def _preferences(count: int) -> list[Json]:
    return [pod(f"p{i}", preferring(term(f"l{i}", "Exists"))) for i in range(count)]


def _tolerations(count: int) -> list[Json]:
    return [
        pod(f"p{i}", {"tolerations": [{"key": f"t{i}", "operator": "Exists"}]})
        for i in range(count)
    ]


def _shapes(count: int) -> list[Json]:
    """About the same for each pod, of another amount: nodes must be bought at every size."""
    return [
        pod(f"p{i}", requests_of({"cpu": f"{3000 + i % 40}m", "memory": f"{524_288 + i}Ki"}))
        for i in range(count)
    ]


def _labels(count: int) -> list[Json]:
    """Running pods with labels of their own, and as many that read them."""
    return [
        *(bound(pod(f"r{i}", None, **{f"l{i}": "x"}), i) for i in range(count // 2)),
        *(pod(f"p{i}", anti(term(f"l{i}", "Exists"))) for i in range(count // 2)),
    ]


def _running_anti(count: int) -> list[Json]:
    """Running pods that keep away from labels that nobody has."""
    return [bound(pod(f"r{i}", anti(term(f"l{i}", "Exists"))), i) for i in range(count)]


def _running_spread(count: int) -> list[Json]:
    return [
        bound(pod(f"p{i}", {"topologySpreadConstraints": [spread(f"k/{i}")]}), i)
        for i in range(count)
    ]


def _budgets(count: int) -> list[Json]:
    """A budget for each running pod, by an expression."""
    line = {"operator": "Exists"}
    return [
        *(bound(pod(f"r{i}", None, **{f"l{i}": "x"}), i) for i in range(count // 2)),
        *(
            {
                "kind": "PodDisruptionBudget",
                "metadata": {"namespace": HOSTILE, "name": f"b{i}"},
                "spec": {"selector": {"matchExpressions": [{"key": f"l{i}", **line}]}},
                "status": {"disruptionsAllowed": 0},
            }
            for i in range(count // 2)
        ),
    ]


def _claims(count: int) -> list[Json]:
    return [
        *(pod(f"p{i}", volume_of(f"c{i}")) for i in range(count // 2)),
        *(
            {
                "kind": "PersistentVolumeClaim",
                "metadata": {"namespace": HOSTILE, "name": f"c{i}"},
                "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "local"},
            }
            for i in range(count // 2)
        ),
    ]


def _namespaces(count: int) -> list[Json]:
    every = term("app", "Exists")
    return [
        *({"kind": "Namespace", "metadata": {"name": f"n{i}"}} for i in range(count // 2)),
        *(
            pod(
                f"p{i}",
                anti(
                    {
                        **every,
                        "namespaceSelector": {
                            "matchExpressions": [{"key": f"x{i}", "operator": "DoesNotExist"}]
                        },
                    }
                ),
            )
            for i in range(count // 2)
        ),
    ]


def _annotations(count: int) -> list[Json]:
    made = [bound(pod(f"r{i}"), i) for i in range(count // 100)]
    for each in made:
        each["metadata"]["annotations"] = {"karpenter.sh/do-not-disrupt": "x" * 200_000}
    return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One attack."""

    make: Callable[[int], list[Json]]
    sizes: tuple[int, ...]


USUAL = (1000, 2000, 4000)
SHAPES: Mapping[str, Shape] = {
    "one-pod-spread": Shape(make=_one_spread, sizes=(2000, 4000, 8000)),
    "one-pod-extended-resources": Shape(make=_one_extended, sizes=(5000, 10_000, 20_000)),
    "one-pod-host-ports": Shape(make=_one_ports, sizes=(5000, 10_000, 20_000)),
    "spread-constraints": Shape(make=_spreads, sizes=(500, 1000, 2000)),
    "zone-spreads": Shape(make=_zone_spreads, sizes=USUAL),
    "node-selectors": Shape(make=_selectors, sizes=USUAL),
    "node-affinities": Shape(make=_not_selectors, sizes=USUAL),
    "node-names": Shape(make=_named_nodes, sizes=USUAL),
    "topology-keys": Shape(make=_topology_keys, sizes=(500, 1000, 2000)),
    "extended-resources": Shape(make=_extended, sizes=USUAL),
    "host-ports": Shape(make=_host_ports, sizes=USUAL),
    "anti-affinities": Shape(make=_anti_affinity, sizes=USUAL),
    "anti-everything": Shape(make=_anti_everything, sizes=(500, 1000, 2000)),
    "affinity-chain": Shape(make=_chain, sizes=USUAL),
    "preferences": Shape(make=_preferences, sizes=USUAL),
    "tolerations": Shape(make=_tolerations, sizes=USUAL),
    "sizes": Shape(make=_shapes, sizes=USUAL),
    "labels": Shape(make=_labels, sizes=USUAL),
    "running-anti-affinities": Shape(make=_running_anti, sizes=USUAL),
    "running-spreads": Shape(make=_running_spread, sizes=USUAL),
    "budgets": Shape(make=_budgets, sizes=USUAL),
    "claims": Shape(make=_claims, sizes=USUAL),
    "namespaces": Shape(make=_namespaces, sizes=USUAL),
    "host-name-lines": Shape(make=hostile_lines.host_lines, sizes=USUAL),
    "sector-lists": Shape(make=hostile_lines.sector_lists, sizes=(200, 400, 800)),
    "budget-lines": Shape(make=hostile_lines.budget_lines, sizes=(500, 1000, 2000)),
    "claim-lines": Shape(make=hostile_lines.claim_lines, sizes=USUAL),
    "daemon-set-lines": Shape(make=hostile_lines.daemon_lines, sizes=(250, 500, 1000)),
    "annotations": Shape(make=_annotations, sizes=USUAL),
}


def _running_near_all(count: int) -> list[Json]:
    return [
        bound(pod(f"p{i}", near(term("app", "NotIn", f"b{i}")), app=f"a{i}"), i)
        for i in range(count)
    ]


def _running_spread_over_all(count: int) -> list[Json]:
    """Each spread by zone together with all others, however unevenly."""
    loose = {"topologyKey": ZONE, "maxSkew": 1000, "whenUnsatisfiable": "DoNotSchedule"}
    rules = [{**term("app", "NotIn", f"b{i}"), **loose} for i in range(count)]
    return [
        bound(pod(f"p{i}", {"topologySpreadConstraints": [rule]}, app=f"a{i}"), i)
        for i, rule in enumerate(rules)
    ]


def _running_skews(count: int) -> list[Json]:
    """The same pods, each with a maxSkew of its own."""
    return [
        bound(
            pod(
                f"p{i}",
                {"topologySpreadConstraints": [{**spread(ZONE, app="a"), "maxSkew": i + 1}]},
                app="a",
            ),
            i,
        )
        for i in range(count)
    ]


RUNNING: Mapping[str, Callable[[int], list[Json]]] = {
    "anti-everything": lambda count: [bound(p, i) for i, p in enumerate(_anti_everything(count))],
    "near-everything": _running_near_all,
    "spread-over-everything": _running_spread_over_all,
    "skews": _running_skews,
}
"""Running pods, each with a rule of its own about nearly all others: they cost most where nodes are
looked for that could be emptied."""


def raw(each: Json) -> RawObject:
    """The object as a list of the API server holds it."""
    kind = each["kind"]
    return RawObject(_GROUPS.get(kind, "v1"), kind, encode(each))


def peaceful() -> list[Json]:
    """What the other tenants want: pods of a few sizes, some spread, some apart."""
    app = {"app": "web"}
    return [
        *(
            pod(
                f"web-{i}",
                {"topologySpreadConstraints": [spread(ZONE, **app)]},
                namespace=PEACEFUL,
                **app,
            )
            for i in range(30)
        ),
        *(pod(f"job-{i}", namespace=PEACEFUL) for i in range(30)),
        *(
            pod(
                f"big-{i}",
                {
                    "containers": [
                        {"name": "c", "resources": {"requests": {"cpu": "7", "memory": "40Gi"}}}
                    ]
                },
                namespace=PEACEFUL,
            )
            for i in range(5)
        ),
    ]


def world(objects: list[RawObject], nodes: int = NODES) -> tuple[Snapshot, PlannerSettings]:
    """The objects in a cluster of nodes whose fleets EC2 has answered about."""
    settings = clusters.usual_fleets()
    state = decode_cluster(objects)
    made = clusters.snapshot_of((), clusters.nodes_of(settings, nodes), settings)
    return replace(made, cluster=replace(state, nodes=made.cluster.nodes)), settings
