"""Hostname rules that count pods of other kinds: packed for, not found out afterwards."""

from dataclasses import replace

from reconciler.model.cluster import Pod
from reconciler.planner.planner import plan
from tests.benchmarks import clusters, pods
from tests.benchmarks.measure import bought
from tests.builders import (
    HOSTNAME,
    make_fleet_settings,
    make_pod,
    make_pods,
    make_settings,
    make_snapshot,
    near,
    spread,
)

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


def test_rule_that_counts_no_pod_of_the_purchase_is_one_among_others() -> None:
    """Two pods that keep clear of a label which no other pod has ended every plan."""
    fleets = (
        make_fleet_settings("s", cpu=8, max_capacity=40),
        make_fleet_settings("m", cpu=4, price="0.06"),
    )
    plain = [
        make_pod(
            f"p{n}", cpu=f"{1000 + 131 * n}m", memory=f"{700 + 313 * n}Mi", labels={"app": "a"}
        )
        for n in range(22)
    ]
    choosy = [
        make_pod(
            f"c{n}",
            cpu=f"{900 + 77 * n}m",
            labels={"app": "a"},
            pod_anti_affinity=(near(HOSTNAME, app="a"),),
            topology_spread=(spread(HOSTNAME, app="b"),),
        )
        for n in range(2)
    ]
    made = plan(make_snapshot(*plain, *choosy), make_settings(*fleets))
    assert made.unplaceable == ()
    places = [(p.fleet, p.new_node) for p in made.placements if p.pod.name.startswith("c")]
    others = [(p.fleet, p.new_node) for p in made.placements if not p.pod.name.startswith("c")]
    assert len(set(places)) == 2
    assert not set(places) & set(others)


def test_few_pods_that_avoid_another_kind_are_packed_by_that_at_once() -> None:
    """They were packed together first and got a third node, as the proven optimum."""
    fleet = make_fleet_settings("s", cpu=8, memory="32Gi", pods=29, over_subscription=0.0)
    shunned = make_pods(2, "a", cpu="3", memory="7000Mi", labels={"app": "a"})
    choosy = make_pods(
        4,
        "b",
        cpu="500m",
        memory="7000Mi",
        labels={"app": "b"},
        pod_anti_affinity=(near(HOSTNAME, app="a"),),
    )
    made = plan(make_snapshot(*shunned, *choosy), make_settings(fleet))
    assert made.unplaceable == ()
    assert made.fleets[0].target == 2
    assert made.cost.gap == 0


def test_spread_that_counts_other_kinds_only_is_no_proof_of_the_cheapest_purchase() -> None:
    """One node would hold all three in whatever order they are bound: its price is the bound."""
    fleet = make_fleet_settings("s", price="0.20", over_subscription=0.0)
    counted = make_pods(2, "y", cpu="500m", labels={"app": "y"})
    spreads = make_pod("x", cpu="250m", topology_spread=(spread(HOSTNAME, app="y"),))
    made = plan(make_snapshot(*counted, spreads), make_settings(fleet))
    assert made.cost.hourly_usd_after == 0.20 * made.fleets[0].target
    assert made.cost.hourly_usd_lower_bound == 0.20


def test_nodes_filled_evenly_keep_kinds_apart() -> None:
    """Equal nodes were filled whatever was on them."""
    fleet = make_fleet_settings("s", cpu=8, memory="32Gi", pods=110, over_subscription=0.0)
    shunned = [
        make_pod(f"a{n}", cpu=f"{200 + n}m", memory="512Mi", labels={"app": "a"}) for n in range(60)
    ]
    choosy = [
        make_pod(
            f"b{n}",
            cpu=f"{300 + n}m",
            memory="512Mi",
            labels={"app": "b"},
            pod_anti_affinity=(near(HOSTNAME, app="a"),),
        )
        for n in range(12)
    ]
    made = plan(make_snapshot(*shunned, *choosy), make_settings(fleet))
    assert made.unplaceable == ()
    nodes: dict[int | None, set[str]] = {}
    for placed in made.placements:
        nodes.setdefault(placed.new_node, set()).add(placed.pod.name[0])
    assert all(len(kinds) == 1 for kinds in nodes.values())
    assert made.fleets[0].target == 3


def test_patterns_of_larger_sets_obey_rules_between_kinds() -> None:
    """Kinds that avoid each other were packed together, and bought for again: 24 % too dear.

    4.55 USD/h is the least that these pods can cost, found and proven by CP-SAT.
    """
    sizes = ((4, "16Gi", "0.2356"), (8, "64Gi", "0.5057"), (2, "16Gi", "0.1367"))
    fleets = [
        make_fleet_settings(
            f"c{cpu}", cpu=cpu, memory=memory, pods=58, price=price, over_subscription=0.0
        )
        for cpu, memory, price in sizes
    ]
    kinds = (
        ("a", 6, "1900m", "7000Mi", "a"),
        ("b", 11, "100m", "7000Mi", "a"),
        ("c", 9, "3", "1Gi", None),
        ("d", 6, "250m", "128Mi", None),
        ("e", 8, "500m", "512Mi", None),
        ("f", 9, "3", "512Mi", "c"),
    )
    waiting = [
        pod
        for name, count, cpu, memory, shunned in kinds
        for pod in make_pods(
            count,
            name,
            cpu=cpu,
            memory=memory,
            labels={"app": name},
            pod_anti_affinity=(near(HOSTNAME, app=shunned),) if shunned else (),
        )
    ]
    made = plan(make_snapshot(*waiting), make_settings(*fleets))
    assert made.unplaceable == ()
    assert made.cost.hourly_usd_after <= 1.05 * 4.55
