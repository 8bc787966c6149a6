"""Where the Lease is kept."""

from pathlib import Path

from reconciler.adapters.kubernetes import own_namespace


def test_pod_keeps_its_lease_in_its_own_namespace(tmp_path: Path) -> None:
    """Rights on Leases end at the namespace that install.yaml grants them in."""
    file = tmp_path / "namespace"
    file.write_text("fleet-reconciler\n")
    assert own_namespace(file) == "fleet-reconciler"


def test_laptop_has_no_namespace_of_its_own(tmp_path: Path) -> None:
    """A namespace that was guessed would keep a second Lease, and two would act."""
    assert own_namespace(tmp_path / "missing") is None
