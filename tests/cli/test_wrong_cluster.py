"""The config and the fleets of one cluster, the objects of another: what `plan` makes of it."""

from pathlib import Path

from tests.cli.inputs import Desk, Json, fleet, fleets, instances, listing, node, pod

KUBE_SYSTEM: Json = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "kube-system", "uid": "uid-of-b"},
}
LEASE: Json = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"name": "fleet-reconciler", "namespace": "kube-system"},
}


def lease(uid: str) -> Json:
    """Our Lease with a proof of the cluster with this identity."""
    bound = (
        f'{{"cluster_uid":"{uid}","fleets":["fleet-primary-std"],'
        '"proven_at":"2026-01-31T10:00:00Z"}'
    )
    metadata = {**LEASE["metadata"], "annotations": {"fleet-reconciler.io/bound-to": bound}}
    return {**LEASE, "metadata": metadata}


def fleets_at_work(count: int = 5) -> Json:
    """A fleet of cluster A with instances that have run for hours."""
    members = [(f"of-a-{n}", "primary-std") for n in range(count)]
    return fleets(fleet("primary-std", count)) | instances(*members)


def kinds(made: Json) -> set[str]:
    """The actions of a plan."""
    return {action["action"] for action in made["actions"]}


def test_empty_cluster_ends_nothing(desk: Desk) -> None:
    """A wrong kube-context would end the whole fleet."""
    made = desk.plan_of(KUBE_SYSTEM, aws=fleets_at_work())
    assert made["actions"] == []
    assert made["binding"]["verdict"] == "unproven"
    assert made["binding"]["removals_allowed"] is False
    assert {each["code"] for each in made["held"]} == {"unproven-cluster"}
    assert len(made["held"]) == 5


def test_cluster_without_the_namespace_is_judged_by_its_nodes(desk: Desk) -> None:
    """Files of `kubectl get nodes,pods` hold no Namespace, and would be taken for proof."""
    idle = {"fleet-reconciler.io/unneeded-since": "2026-01-31T10:00:00Z"}
    twins = (node("b1", annotations=idle), node("b2"), pod("b", node="b2"))
    made = desk.plan_of(*twins, aws=fleets_at_work())
    assert (made["binding"]["verdict"], kinds(made)) == ("unproven", set())


def test_lease_restored_from_a_backup_proves_nothing(desk: Desk) -> None:
    """A cluster rebuilt from a backup of another would end that one's fleet."""
    made = desk.plan_of(KUBE_SYSTEM, lease("uid-of-a"), aws=fleets_at_work())
    assert (made["binding"]["verdict"], kinds(made)) == ("unproven", set())


def test_lease_of_this_cluster_proves_it(desk: Desk) -> None:
    """A fleet that was scaled to zero could never replace a machine that does not boot."""
    made = desk.plan_of(KUBE_SYSTEM, lease("uid-of-b"), aws=fleets_at_work(1))
    assert made["binding"]["verdict"] == "previously-proven"
    assert kinds(made) == {"terminate-instance"}


def test_table_begins_with_the_verdict_and_lists_what_is_held(desk: Desk, tmp_path: Path) -> None:
    """Whoever reads the table would see `Nothing to do` and not why."""
    cluster = desk.write("cluster.json", listing(KUBE_SYSTEM))
    aws = desk.write("aws.json", fleets_at_work(1))
    answer = desk.plan("--cluster", cluster, "--aws", aws, "--output", "table")
    assert answer.code == 0
    assert answer.out.splitlines()[0].startswith("Cluster unproven: NOT PROVEN")
    (held,) = [line for line in answer.out.splitlines() if "unproven-cluster" in line]
    assert "nothing proves that this cluster runs the fleets' instances" in " ".join(held.split())
