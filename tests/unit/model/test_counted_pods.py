"""Which pods keep their node."""

from dataclasses import replace

import pytest

from reconciler.model.counted_pods import counts
from tests.builders import make_pod

POD = make_pod("p", node="n")
OTHERS = {
    "daemon": make_pod("d", node="n", owner="DaemonSet"),
    "mirror": replace(POD, mirror=True),
    "finished": replace(POD, phase="Succeeded"),
    "balloon": replace(POD, spec=replace(POD.spec, priority=-1)),
}


def test_pod_at_work_counts() -> None:
    """Its node would be ended under it."""
    assert counts(POD)


@pytest.mark.parametrize("kind", OTHERS)
def test_pod_that_goes_with_its_node_does_not_count(kind: str) -> None:
    """No node would ever be empty."""
    assert not counts(OTHERS[kind])


@pytest.mark.parametrize("kind", OTHERS)
def test_pod_that_cannot_be_read_counts_whatever_it_seems_to_be(kind: str) -> None:
    """The plan kept its node, and the last check before an end would not have."""
    assert counts(replace(OTHERS[kind], unreadable=True))
