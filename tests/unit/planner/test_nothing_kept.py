"""What plans remember from one to the next is gone with the objects that it is about."""

import gc
from dataclasses import replace
from weakref import ReferenceType, ref

from reconciler.model.cluster import Owner, PodDisruptionBudget
from reconciler.model.frozen import Labels
from reconciler.model.selectors import LabelSelector, Requirement
from reconciler.model.snapshot import Snapshot
from reconciler.planner.planner import plan
from tests.benchmarks.clusters import nodes_of, snapshot_of, usual_fleets
from tests.builders import (
    make_daemon_set,
    make_pod,
    make_spec,
    requiring,
)

SETTINGS = usual_fleets()
SECTOR = next(iter(SETTINGS.fleets())).sector
NODES = nodes_of(SETTINGS, 4)
VERSIONS = 5


def selector(version: str) -> LabelSelector:
    """Covers all pods but one that does not exist; its labels are of this version alone."""
    line = Requirement(key="app", operator="NotIn", values=(version,))
    return LabelSelector(match_labels=Labels({"tenant": "t"}), match_expressions=(line,))


def version_of(number: int) -> tuple[Snapshot, dict[str, ReferenceType[object]]]:
    """A snapshot with one more version of a tenant's objects, and what it is told by."""
    version = f"v{number}"
    affinity = requiring("kubernetes.io/os", "NotIn", version)
    spec = make_spec(node_affinity=affinity)
    labels = Labels({"tenant": "t", "version": version})
    budget = PodDisruptionBudget(
        namespace="ns", name="b", selector=selector(version), disruptions_allowed=1
    )
    daemon = replace(make_daemon_set(cpu="50m", node_affinity=affinity), uid="uid-of-daemon")
    of_daemon = Owner(kind="DaemonSet", name=daemon.name, uid=daemon.uid)
    pods = [
        make_pod("running", node=NODES[0].name, spec=spec, labels=labels, owner="ReplicaSet"),
        make_pod(
            "pending",
            spec=make_spec(cpu="12", sector=SECTOR, node_affinity=affinity),
            labels=labels,
        ),
        # With what admission has added to the template.
        make_pod("d", "kube-system", node=NODES[0].name, cpu="70m", owner=of_daemon),
    ]
    seen = snapshot_of(pods, NODES, SETTINGS)
    cluster = replace(seen.cluster, relists=2, budgets=(budget,), daemon_sets=(daemon,))
    assert budget.selector is not None
    written = {
        "spec of a running pod": pods[0].spec,
        "spec of a pending pod": pods[1].spec,
        "spec of a DaemonSet": daemon.spec,
        "labels of pods": pods[0].labels,
        "labels of a budget": budget.selector.match_labels,
    }
    return replace(seen, cluster=cluster), {name: ref(each) for name, each in written.items()}


def planned(number: int) -> dict[str, ReferenceType[object]]:
    """Plan with one version; return what that is told by."""
    snapshot, written = version_of(number)
    plan(snapshot, SETTINGS)
    return written


def test_earlier_versions_of_objects_are_not_kept() -> None:
    """A tenant who rewrote a budget of 250 kB before each plan took 1.1 GiB within minutes."""
    versions = [planned(number) for number in range(VERSIONS)]
    gc.collect()
    kept = {name for version in versions[:-1] for name, of in version.items() if of() is not None}
    assert kept == set()
