"""Who a process is in the election: the pod, and only one process of it at a time."""

from pathlib import Path

from reconciler.adapters.kubernetes import election_identity
from reconciler.adapters.kubernetes.identity import LOCK_NAME

POD = {"POD_NAME": "fleet-reconciler-7d9-x", "POD_UID": "0b1c"}


def test_restarted_container_of_a_pod_is_the_same_candidate(tmp_path: Path) -> None:
    """Otherwise it waits a whole lease duration for its own predecessor."""
    seen = []
    for _ in range(2):
        with election_identity(POD, tmp_path) as identity:
            seen.append(identity)
    assert seen == ["fleet-reconciler-7d9-x_0b1c"] * 2


def test_second_process_of_a_pod_is_another_candidate(tmp_path: Path) -> None:
    """`kubectl exec … reconciler run --once` has the same environment, and both would act."""
    with election_identity(POD, tmp_path) as first, election_identity(POD, tmp_path) as second:
        assert first == "fleet-reconciler-7d9-x_0b1c"
        assert second != first


def test_process_outside_of_a_pod_is_a_candidate_of_its_own(tmp_path: Path) -> None:
    """Two shells on one laptop must not be the same candidate."""
    with election_identity({}, tmp_path) as first, election_identity({}, tmp_path) as second:
        assert first != second
    assert not (tmp_path / LOCK_NAME).exists()


def test_pod_that_cannot_lock_is_a_candidate_of_its_own(tmp_path: Path) -> None:
    """A read-only file system must cost a wait, never two that act."""
    with election_identity(POD, tmp_path / "missing") as identity:
        assert not identity.startswith("fleet-reconciler-7d9-x_0b1c")


def test_lock_file_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    """Whoever may write into the folder could have any file created elsewhere."""
    (tmp_path / LOCK_NAME).symlink_to(tmp_path / "elsewhere")
    with election_identity(POD, tmp_path):
        assert not (tmp_path / "elsewhere").exists()
