"""Cluster Autoscaler's scale-down case: what can go goes, with a place for every pod."""

import sys
from types import FrameType

from reconciler.planner.planner import plan
from tests.benchmarks import scale_down


def test_small_form_lets_three_fifths_of_the_nodes_go() -> None:
    """A benchmark of a plan that moves nothing would be fast for the wrong reason."""
    found = scale_down.measure(50)
    assert (found.leaving, found.moved, found.placed) == (30, 1200, 1200)


def work(nodes: int) -> int:
    """How many calls of Python functions a plan makes: the same on every machine."""
    snapshot, settings = scale_down.scene(nodes)
    plan(snapshot, settings)  # what is only made once is made
    calls = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        plan(snapshot, settings)
    finally:
        sys.setprofile(before)
    return calls


def test_work_grows_as_the_cluster_does() -> None:
    """Quadratic work takes half a minute with 2,000 nodes, and pods wait for as long."""
    small, large = work(40), work(160)
    assert large < 4 * 1.2 * small
