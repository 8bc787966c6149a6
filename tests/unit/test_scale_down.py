"""Cluster Autoscaler's scale-down case: what can go goes, with a place for every pod."""

from tests.benchmarks import scale_down

SECONDS_MAX = 2.0
MIB_MAX = 1024


def test_small_form_lets_three_fifths_of_the_nodes_go() -> None:
    """A benchmark of a plan that moves nothing would be fast for the wrong reason."""
    found = scale_down.measure(50)
    assert (found.leaving, found.moved, found.placed) == (30, 1200, 1200)


def test_full_form_finds_all_1200_within_two_seconds_and_a_gibibyte() -> None:
    """A cycle that takes half a minute leaves pods waiting for as long."""
    found = scale_down.measured_apart()
    assert (found.leaving, found.moved, found.placed) == (1200, 48_000, 48_000)
    assert min(found.cpu) < SECONDS_MAX
    assert found.peak_mib < MIB_MAX
