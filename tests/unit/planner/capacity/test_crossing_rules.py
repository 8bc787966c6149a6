"""Hostname rules that count pods of other kinds: packed for, not found out afterwards."""

from dataclasses import replace

from reconciler.model.cluster import Pod
from reconciler.planner.planner import plan
from tests.benchmarks import clusters, pods
from tests.benchmarks.measure import bought
from tests.builders import HOSTNAME, make_settings

SETTINGS = clusters.karpenter_fleets(40)


def test_mix_of_rules_is_packed_by_them() -> None:
    """A tenth of the pods would get small nodes of their own afterwards: 30 % more CPU.

    The rules hold for each node as a whole: in whatever order kube-scheduler comes to the pods,
    none of them is refused where it is promised a place.
    """
    waiting = {pod.key: pod for pod in pods.karpenter_mix_real(1000)}
    made = plan(clusters.snapshot_of(waiting.values(), (), SETTINGS), SETTINGS)
    assert not made.unplaceable
    _, cpus, _ = bought(made, SETTINGS)
    assert cpus <= 800
    assert made.cost.gap <= 0.12
    nodes: dict[tuple[str | None, int | None], list[Pod]] = {}
    for placed in made.placements:
        nodes.setdefault((placed.fleet, placed.new_node), []).append(waiting[placed.pod])
    for held in nodes.values():
        for rule in (r for pod in held for r in pod.spec.topology_spread):
            counted = [p for p in held if rule.selector and rule.selector.matches(p.labels)]
            assert rule.topology_key != HOSTNAME or len(counted) <= rule.max_skew


def test_limits_of_fleets_hold_where_many_nodes_are_packed_by_patterns() -> None:
    """Patterns are made for sizes; the fleets of a size have a limit each."""
    fleets = [replace(fleet, max_capacity=20) for fleet in SETTINGS.fleets()]
    waiting = pods.karpenter_mix_real(1000)
    settings = make_settings(*fleets)
    made = plan(clusters.snapshot_of(waiting, (), settings), settings)
    assert not made.unplaceable
    assert max(fleet.target for fleet in made.fleets) <= 20
