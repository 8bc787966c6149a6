"""Objects of one tenant that have many lines or values, each within its limits."""

from tests.benchmarks.hostile_pods import HOSTILE, Json, bound, node_affinity, pod, volume_of
from tests.builders import HOSTNAME


def host_lines(count: int) -> list[Json]:
    """Each pod compares every node's name with lines of its own, which all hold but the last."""
    return [
        pod(
            f"p{i}",
            node_affinity(
                *(
                    {"key": HOSTNAME, "operator": "NotIn", "values": [f"{i}-{j}"]}
                    for j in range(31)
                ),
                {"key": "example.com/none", "operator": "Exists"},
            ),
        )
        for i in range(count)
    ]


def sector_lists(count: int) -> list[Json]:
    """Each pod names a thousand sectors that do not exist."""
    return [
        pod(
            f"p{i}",
            node_affinity(
                {"key": "sector", "operator": "In", "values": [f"s{i}-{j}" for j in range(1024)]}
            ),
        )
        for i in range(count)
    ]


def _absent(prefix: str, count: int) -> list[Json]:
    """Lines that hold for whatever has no label of these, and one that does not."""
    absent = [{"key": f"{prefix}-{j}", "operator": "DoesNotExist"} for j in range(count - 1)]
    return [*absent, {"key": "example.com/none", "operator": "Exists"}]


def budget_lines(count: int) -> list[Json]:
    """Running pods with labels of their own, and budgets whose lines are compared with all."""
    return [
        *(bound(pod(f"r{i}", None, **{f"l{i}": "x"}), i) for i in range(count // 2)),
        *(
            {
                "kind": "PodDisruptionBudget",
                "metadata": {"namespace": HOSTILE, "name": f"b{i}"},
                "spec": {"selector": {"matchExpressions": _absent(f"k{i}", 64)}},
                "status": {"disruptionsAllowed": 1},
            }
            for i in range(count // 2)
        ),
    ]


def claim_lines(count: int) -> list[Json]:
    """Claims whose selectors are compared with the volumes that somebody made by hand."""
    local_disks = {
        "kind": "StorageClass",
        "metadata": {"name": "local"},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    of_node = {"key": HOSTNAME, "operator": "In"}
    return [
        local_disks,
        *(
            {
                "kind": "PersistentVolume",
                "metadata": {"name": f"pv{i}"},
                "spec": {
                    "capacity": {"storage": "100Gi"},
                    "accessModes": ["ReadWriteOnce"],
                    "storageClassName": "local",
                    "nodeAffinity": {
                        "required": {
                            "nodeSelectorTerms": [
                                {"matchExpressions": [{**of_node, "values": [f"node-{i:05}"]}]}
                            ]
                        }
                    },
                },
            }
            for i in range(20)
        ),
        *(pod(f"p{i}", volume_of(f"c{i}")) for i in range(count // 2)),
        *(
            {
                "kind": "PersistentVolumeClaim",
                "metadata": {"namespace": HOSTILE, "name": f"c{i}"},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "storageClassName": "local",
                    "selector": {"matchExpressions": _absent(f"k{i}", 64)},
                },
            }
            for i in range(count // 2)
        ),
    ]


def daemon_lines(count: int) -> list[Json]:
    """DaemonSets that compare every kind of new node with lines of their own."""
    return [
        {
            "kind": "DaemonSet",
            "metadata": {"namespace": HOSTILE, "name": f"d{i}", "uid": f"d{i}"},
            "spec": {
                "template": {
                    "metadata": {"labels": {"app": f"d{i}"}},
                    "spec": {"containers": [], **node_affinity(*_absent(f"k{i}", 64))},
                }
            },
        }
        for i in range(count)
    ]
