"""Laws that every plan obeys, over random clusters."""

from dataclasses import replace
from random import Random  # noqa: TID251 - the test is about order, the seed is drawn
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.actions import SetCapacity
from reconciler.model.cluster import Pod
from reconciler.model.frozen import FrozenMap
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from reconciler.planner.planner import plan
from reconciler.planner.settings import Headroom
from reconciler.records.plan import encode_plan
from tests.builders import ZONE, make_node, make_pod
from tests.properties.case import Case
from tests.properties.checker import faults_of
from tests.properties.completeness import needlessly_unplaceable
from tests.properties.kube_scheduler import KubeScheduler
from tests.properties.mix import Mix
from tests.properties.reached import asked_for
from tests.properties.scale_in_rules import scale_in_faults
from tests.properties.strategies import cases


@given(case=cases())
def test_plan_of_any_cluster_keeps_every_promise_by_kube_scheduler_rules(case: Case) -> None:
    """Nodes would be bought that the pods they are for can never bind to."""
    made = plan(case.snapshot, case.settings)
    assert faults_of(case.snapshot, case.settings, made) == []


VOLUMES = Mix(volumes=True, between_pods=False, spread=False, trouble=False)
BALLOONS = Mix(balloons=True, between_pods=False, spread=False, trouble=False)
RULES = Mix(crowded=True, trouble=False, limits=False, apps_max=3, nodes_max=4)


@given(case=st.one_of(cases(VOLUMES), cases(BALLOONS), cases(RULES)))
@settings(max_examples=240)
def test_plan_of_a_cluster_crowded_with_one_feature_keeps_every_promise(case: Case) -> None:
    """What is rare in a mix of everything seldom meets its like: errors there would stay hidden."""
    made = plan(case.snapshot, case.settings)
    assert faults_of(case.snapshot, case.settings, made) == []


def shuffled(snapshot: Snapshot, seed: int) -> Snapshot:
    """The same objects in another order."""
    dealer = Random(seed)
    cluster, cloud = snapshot.cluster, snapshot.cloud
    parts: dict[str, Any] = {
        name: tuple(dealer.sample(getattr(cluster, name), len(getattr(cluster, name))))
        for name in (
            "pods",
            "nodes",
            "daemon_sets",
            "claims",
            "volumes",
            "storage_classes",
            "csi_nodes",
            "budgets",
            "namespaces",
        )
    }
    if cloud is not None:
        cloud = replace(
            cloud,
            fleets=tuple(dealer.sample(cloud.fleets, len(cloud.fleets))),
            instances=tuple(dealer.sample(cloud.instances, len(cloud.instances))),
        )
    return replace(snapshot, cluster=replace(cluster, **parts), cloud=cloud)


@given(case=cases(), seed=st.integers(0, 2**16))
def test_plan_of_objects_in_another_order_is_the_same_to_the_byte(case: Case, seed: int) -> None:
    """Two relists would give two plans, and the loop would go back and forth."""
    one = encode_plan(plan(case.snapshot, case.settings), kept=True)
    other = encode_plan(plan(shuffled(case.snapshot, seed), case.settings), kept=True)
    assert one == other


def without(made: Plan, name: str) -> bytes:
    """The plan as if a pod had not been there."""
    return encode_plan(
        replace(made, unplaceable=tuple(u for u in made.unplaceable if u.pod.name != name)),
        kept=True,
    )


@given(
    case=cases(),
    priority=st.sampled_from([-1, 0, 10_000]),
    kind=st.sampled_from(["too large", "wrong selector", "unknown device", "unknown sector"]),
    percent=st.sampled_from([0, 30]),
)
def test_unplaceable_pod_changes_nothing_for_the_others(
    case: Case, priority: int, kind: str, percent: int
) -> None:
    """One bad pod would hold up, or make more expensive, what everybody else needs."""
    ours = case.settings.fleets()[0].sector
    kept = (Headroom(sector=ours, percent=percent),) if percent else ()
    config = replace(case.settings, headroom=kept)
    changes: dict[str, dict[str, Any]] = {
        "too large": {"cpu": "10000", "sector": ours},
        "wrong selector": {"node_selector": {"no-such-label": "x", "sector": ours}},
        "unknown device": {"requests": {"example.com/gpu": 1}, "sector": ours},
        "unknown sector": {"sector": "nowhere"},
    }
    bad = make_pod("zz-bad", priority=priority, **changes[kind])
    cluster = case.snapshot.cluster
    more = replace(case.snapshot, cluster=replace(cluster, pods=(*cluster.pods, bad)))
    made = plan(more, config)
    assert "zz-bad" in [u.pod.name for u in made.unplaceable]
    assert without(made, "zz-bad") == encode_plan(plan(case.snapshot, config), kept=True)


FREE = Mix(between_pods=False, spread=False, limits=False)
SCALE_IN = Mix(clouds=True, apps_max=2, nodes_max=8, idle=True)


@given(case=cases(FREE), zone=st.sampled_from(["us-west-2a", "us-west-2b"]))
def test_another_empty_node_never_makes_a_pod_unplaceable(case: Case, zone: str) -> None:
    """Capacity that joins would make things worse."""
    cluster = case.snapshot.cluster
    empty = make_node("z-empty", None, zone=zone, labels={ZONE: zone})
    more = replace(case.snapshot, cluster=replace(cluster, nodes=(*cluster.nodes, empty)))
    before = {u.pod for u in plan(case.snapshot, case.settings).unplaceable}
    after = {u.pod for u in plan(more, case.settings).unplaceable}
    # The first of those that share a new volume may go there, and the others must follow it.
    scheduler = KubeScheduler(case.snapshot, [])
    bound = {pod.key for pod in cluster.pods if scheduler.shares_new_volume(pod)}
    assert after - bound <= before


CONSTRAINTS = (
    "node_selector",
    "node_affinity",
    "pod_affinity",
    "pod_anti_affinity",
    "topology_spread",
    "host_ports",
)


def without_constraint(pod: Pod, name: str) -> Pod:
    """The pod without one of its constraints; its sector stays."""
    left: Any = ()
    if name == "node_selector":
        kept = {k: v for k, v in pod.spec.node_selector.items() if k == "sector"}
        left = FrozenMap(kept)
    elif name == "node_affinity":
        left = None
    return replace(pod, spec=replace(pod.spec, **{name: left}))


@given(case=cases(Mix(limits=False, trouble=False)), name=st.sampled_from(CONSTRAINTS))
def test_plan_without_a_constraint_costs_no_more_than_a_node_above_the_plan_with_it(
    case: Case, name: str
) -> None:
    """Asking for less would cost more: nobody could reason about the bill."""
    strict = plan(case.snapshot, case.settings)
    pods = tuple(
        without_constraint(pod, name) if pod.node_name is None else pod
        for pod in case.snapshot.cluster.pods
    )
    cluster = replace(case.snapshot.cluster, pods=pods)
    loose = plan(replace(case.snapshot, cluster=cluster), case.settings)
    if [u.pod for u in loose.unplaceable] != [u.pod for u in strict.unplaceable]:
        return  # another pod is served now, which may cost
    most_expensive = max(float(f.usd_per_hour or 0) for f in case.settings.fleets())
    assert loose.cost.hourly_usd_lower_bound <= strict.cost.hourly_usd_after + 1e-9
    assert loose.cost.hourly_usd_after <= strict.cost.hourly_usd_after * 1.05 + most_expensive


@given(case=cases(Mix(clouds=True)))
def test_plan_of_the_reached_state_buys_nothing_more(case: Case) -> None:
    """Targets would climb with every cycle until nodes have joined."""
    made = plan(case.snapshot, case.settings)
    reached = asked_for(case.snapshot, made)
    again = plan(reached, case.settings)
    raises = [
        a for a in again.actions if isinstance(a, SetCapacity) and a.to_capacity > a.from_capacity
    ]
    assert raises == []


@given(case=cases(FREE))
def test_unplaceable_pod_fits_neither_what_is_there_nor_what_could_be_bought(case: Case) -> None:
    """A pod would wait although there is room, or one more node would serve it."""
    made = plan(case.snapshot, case.settings)
    assert needlessly_unplaceable(case.snapshot, case.settings, made) == []


@given(case=cases(SCALE_IN))
def test_scale_in_of_any_cluster_takes_only_what_nothing_needs(case: Case) -> None:
    """Running work would be ended, or a fleet fall below its minimum."""
    made = plan(case.snapshot, case.settings)
    assert scale_in_faults(case.snapshot, case.settings, made) == []
