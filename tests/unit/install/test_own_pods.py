"""What the pods of the install are to the program itself, and to each other."""

import pytest

from reconciler.install.settings import Gitops
from reconciler.planner.rules import Verdict
from tests.unit.install.rendered import REPOSITORY, pod_of, ruled, settings


@pytest.mark.parametrize("gitops", [None, Gitops(repository=REPOSITORY)], ids=["one", "two loops"])
def test_nodes_of_the_own_pods_can_be_emptied(gitops: Gitops | None) -> None:
    """No rolling update would ever end: its last nodes are those that the reconciler runs on."""
    ruling = ruled(pod_of(settings(gitops=gitops, sector="coordinate")))
    assert ruling.verdict is Verdict.OK, ruling
