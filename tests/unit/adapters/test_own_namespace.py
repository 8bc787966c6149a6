"""Where the Lease is kept."""

from pathlib import Path

from reconciler.adapters.kubernetes import own_namespace


def test_pod_keeps_its_lease_in_its_own_namespace(tmp_path: Path) -> None:
    """Rights on Leases end at the namespace that install.yaml grants them in."""
    file = tmp_path / "namespace"
    file.write_text("fleet-reconciler\n")
    assert own_namespace(file) == "fleet-reconciler"


def test_laptop_keeps_the_lease_in_kube_system(tmp_path: Path) -> None:
    """There is no namespace of one's own outside of a cluster."""
    assert own_namespace(tmp_path / "missing") == "kube-system"
