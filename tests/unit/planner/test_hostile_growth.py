"""What one tenant's objects cost grows no faster than their number, and stays that tenant's."""

import cProfile
import gc
import pstats
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from math import log
from typing import Any

import pytest

from reconciler.model.frozen import Labels
from reconciler.model.plan import Plan
from reconciler.model.selectors import LabelSelector, NodeSelector, NodeSelectorTerm, Requirement
from reconciler.planner.demand import Demand, find_demand
from reconciler.planner.planner import plan
from reconciler.planner.pod_groups import group_pods
from reconciler.planner.work_shares import World, within_work
from tests.benchmarks import hostile
from tests.benchmarks.hostile_pods import HOSTILE, PEACEFUL
from tests.benchmarks.rescheduling import DESCHEDULER
from tests.builders import (
    HOSTNAME,
    NOW,
    ZONE,
    make_fleet_settings,
    make_pod,
    make_settings,
    make_snapshot,
    near,
)

EXPONENT_MAX = 1.2
CALLS_OF_CHANCE = 1000
"""A plan without hostile objects takes 22,000 calls, give or take so many: what was planned in the
same process before it has filled some tables."""
CALLS_PER_LINK_MAX = 1150
"""Fifteen fleets are listed, each with its reason, which names a label of the pod's."""
FEW, MANY = 50, 200
NODES = 20
CUT = ("anti-everything",)
"""Each object means each other one; the plan's budget bounds them."""
NOTHING_OFFERED = ("node-selectors", "topology-keys", "extended-resources")
"""Shapes whose pods go nowhere, so that they take no room from others."""


def planned(shape: str, count: int, nodes: int = NODES) -> tuple[Plan, int]:
    """The plan beside so many hostile objects, and how many calls it took.

    Garbage of other tests is not collected meanwhile: what that calls would count, too.
    """
    made = hostile.SHAPES[shape].make(count) if shape else []
    objects = [hostile.raw(each) for each in [*made, *hostile.peaceful()]]
    profile = cProfile.Profile()
    gc.disable()
    try:
        profile.enable()
        found = plan(*hostile.world(objects, nodes))
        profile.disable()
    finally:
        gc.enable()
    return found, pstats.Stats(profile).total_calls  # type: ignore[attr-defined]


def calls(shape: str, count: int) -> int:
    """The calls of a plan whose tables of the plans before are filled: less is not repeatable."""
    return min(planned(shape, count)[1] for _ in range(2))


@pytest.fixture(scope="module")
def calls_without() -> int:
    """The calls of a plan without hostile objects."""
    return calls("", 0)


@pytest.mark.parametrize(
    "shape", [s for s in hostile.SHAPES if s not in CUT and not s.startswith("one-pod")]
)
def test_calls_grow_no_faster_than_the_objects(shape: str, calls_without: int) -> None:
    """A tenant with a few thousand pods would stop the plan for all."""
    few, many = (calls(shape, count) - calls_without for count in (FEW, MANY))
    few, many = max(few, FEW) + CALLS_OF_CHANCE, max(many, 1) + CALLS_OF_CHANCE
    assert log(many / few) / log(MANY / FEW) <= EXPONENT_MAX, (few, many)


def tidied(shape: str, count: int) -> int:
    """The calls of a plan that looks for nodes to empty, and for pods to move, as others run."""
    running = hostile.RUNNING[shape](count)
    for number, each in enumerate(running):
        each["spec"]["nodeName"] = f"node-{number % NODES:05}"
        each["metadata"]["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r"}
            | {"controller": True}
        ]
    snapshot, settings = hostile.world([hostile.raw(each) for each in running], NODES)
    snapshot = replace(snapshot, cluster=replace(snapshot.cluster, relists=2))
    settings = replace(settings, consolidation=True, descheduler=DESCHEDULER)
    profile = cProfile.Profile()
    gc.disable()
    try:
        profile.enable()
        plan(snapshot, settings)
        profile.disable()
    finally:
        gc.enable()
    made: int = pstats.Stats(profile).total_calls  # type: ignore[attr-defined]
    return made


@pytest.mark.parametrize("shape", hostile.RUNNING)
def test_rules_of_running_pods_cost_no_more_than_their_number(shape: str) -> None:
    """A few thousand running pods, each with a rule about all others, made a plan take 30 s."""
    few, many = (tidied(shape, count) for count in (FEW, MANY))
    assert log(many / few) / log(MANY / FEW) <= EXPONENT_MAX, (few, many)


def test_node_names_cost_the_same_on_any_number_of_nodes() -> None:
    """Each pod that excludes a node by its name would be compared with every node."""
    few, many = (
        planned("node-names", MANY, nodes)[1] - planned("", 0, nodes)[1] for nodes in (20, 200)
    )
    assert many < 1.5 * few


def test_pods_that_wait_for_a_neighbour_cost_no_trial(calls_without: int) -> None:
    """A chain of pods that each want the next one would be tried on a node of every fleet."""
    found, made = planned("affinity-chain", MANY)
    assert {u.reasons[0].code for u in found.unplaceable} == {"pod-affinity"}
    assert (made - calls_without) / MANY < CALLS_PER_LINK_MAX


def test_refusal_that_holds_for_every_fleet_is_found_once(calls_without: int) -> None:
    """Pods spread by keys that no node has would be explained fleet by fleet from the beginning."""
    found, made = planned("topology-keys", MANY)
    assert {len(u.reasons) for u in found.unplaceable} == {15}
    assert (made - calls_without) / MANY < CALLS_PER_LINK_MAX


@pytest.mark.parametrize("shape", ["one-pod-spread", "one-pod-extended-resources"])
def test_one_pod_with_thousands_of_something_costs_next_to_nothing(
    shape: str, calls_without: int
) -> None:
    """One pod froze the plan for every tenant."""
    found, calls = planned(shape, 5000)
    assert calls - calls_without < 20 * 5000, "reading them is all that it costs"
    assert {r.code for u in found.unplaceable for r in u.reasons} == {"too-complex"}


def test_pods_that_mean_each_other_are_cut_by_the_budget(
    calls_without: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No algorithm makes the square of their number small: the rest of them has to wait."""
    monkeypatch.setattr("reconciler.planner.plan_opening.STEPS_MAX", 40_000_000)
    alone, _ = planned("", 0)
    for count in (MANY, 2 * MANY):
        found, calls = planned("anti-everything", count)
        assert calls - calls_without < 1_000_000
        codes = {u.pod.namespace: r.code for u in found.unplaceable for r in u.reasons}
        assert codes == {HOSTILE: "over-work-budget"}
        others = {p.pod for p in found.placements if p.pod.namespace == PEACEFUL}
        assert others == {p.pod for p in alone.placements}


def of_others(made: Plan) -> Any:
    """What a plan decides that is not about the hostile namespace."""
    placed = [p for p in made.placements if p.pod.namespace != HOSTILE]
    refused = [u for u in made.unplaceable if u.pod.namespace != HOSTILE]
    return placed, refused, made.actions


@pytest.mark.parametrize("shape", [*NOTHING_OFFERED, "one-pod-spread", "one-pod-host-ports"])
def test_plan_of_the_others_is_the_same_beside_hostile_pods(shape: str) -> None:
    """Whoever shares a cluster with such a tenant would get other nodes, or none."""
    alone, _ = planned("", 0)
    beside, _ = planned(shape, 5000 if shape.startswith("one-pod") else MANY)
    assert of_others(beside) == of_others(alone)


def kinds(namespace: str, count: int) -> list[Any]:
    """Pods each of another kind, the later ones with rules that are more expensive to plan."""
    return [
        make_pod(
            f"p{i:03}",
            namespace,
            cpu=f"{i + 1}m",
            labels={"app": f"{i}"},
            pod_anti_affinity=tuple(near(f"k{j}", app=f"{i}") for j in range(i % 4)),
        )
        for i in range(count)
    ]


LABELS = [
    Labels({HOSTNAME: f"node-{i}", "fleet": f"f{i % 5}", "sector": "a", ZONE: f"z{i % 3}"})
    for i in range(100)
]


def within(*pods: Any, steps_max: int, bound: Sequence[Any] = (), **compared: Any) -> Demand:
    """What a plan looks at."""
    groups = group_pods(pods)
    settings = make_settings(make_fleet_settings())
    world = World(
        rows=100, labels=LABELS, label_keys=frozenset(LABELS[0]), namespaces=2, **compared
    )
    return within_work(find_demand(groups, settings), group_pods(bound), world, NOW, steps_max)


def deferred(*pods: Any, **asked: Any) -> list[tuple[str, str]]:
    """Which pods wait for another plan, by namespace and name."""
    found = within(*pods, **asked)
    kept = {pod.key for wish in found.unschedulable for pod in wish.group.pods}
    assert kept | {key for key, _ in found.deferred} == {pod.key for pod in pods}
    return [(key.namespace, key.name) for key, _ in found.deferred]


def test_within_the_budget_nothing_is_deferred() -> None:
    """Pods would wait for no reason."""
    assert deferred(*kinds("a", 10), *kinds("b", 10), steps_max=10**9) == []


def test_greediest_namespace_gives_way_alone_its_most_expensive_kinds_first() -> None:
    """The tenants who ask for little would pay for the one who asks for much."""
    greedy, modest = kinds("greedy", 200), kinds("modest", 5)
    found = deferred(*greedy, *modest, steps_max=10_000_000)
    assert {namespace for namespace, _ in found} == {"greedy"}
    assert 0 < len(found) < 200
    rules = {pod.key.name: len(pod.spec.pod_anti_affinity) for pod in greedy}
    waiting = {name for _, name in found}
    planned_rules = [rules[pod.key.name] for pod in greedy if pod.key.name not in waiting]
    assert max(planned_rules) <= min(rules[name] for name in waiting)


GREEDY = kinds("greedy", 200)
ENOUGH = 40_000_000
"""Steps for all of them; a quarter is not enough, and a sixteenth still less."""


def created(seconds_ago: float, **fields: Any) -> Any:
    """A pod of another namespace."""
    return make_pod("p", "modest", created_at=NOW - timedelta(seconds=seconds_ago), **fields)


def test_one_namespace_gets_a_sixteenth_of_a_plan_while_pods_of_others_come() -> None:
    """Their nodes would be asked for only when all of his pods are planned."""
    beside_new = deferred(*GREEDY, created(50), steps_max=ENOUGH)
    beside_old = deferred(*GREEDY, created(70), steps_max=ENOUGH)
    assert deferred(*GREEDY, steps_max=ENOUGH) == []
    assert beside_new == deferred(*GREEDY, bound=[created(50, node="node-1")], steps_max=ENOUGH)
    unknown = make_pod("p", "modest", node="node-1", created_at=None)
    assert beside_old == deferred(*GREEDY, bound=[unknown], steps_max=ENOUGH)
    assert {namespace for namespace, _ in beside_new} == {"greedy"}
    assert 0 < len(beside_old) < len(beside_new) < 200


@pytest.mark.parametrize(
    ("others", "demanding"), [([created(3600)], {"greedy"}), ([], set())], ids=["beside", "alone"]
)
def test_who_takes_long_to_plan_beside_others_is_demanding(
    others: list[Any], demanding: set[str]
) -> None:
    """The loop plans less often for such a namespace, but not if it is the only one."""
    assert within(*GREEDY, *others, steps_max=ENOUGH).demanding == demanding
    assert within(*GREEDY[:5], *others, steps_max=ENOUGH).demanding == set()


def test_one_namespace_gets_a_quarter_of_a_plan_while_others_use_the_cluster() -> None:
    """A pod of theirs that comes while his are planned would wait until all of them are."""
    pending = deferred(*GREEDY, created(3600), steps_max=ENOUGH)
    for running, active in (
        (created(590, node="node-1"), True),
        (created(610, node="node-1"), False),
        (created(590, node="node-1", owner="DaemonSet"), False),
        (make_pod("own", "greedy", node="node-1", created_at=NOW), False),
    ):
        found = deferred(*GREEDY, bound=[running], steps_max=ENOUGH)
        assert found == (pending if active else [])


def test_as_many_pods_with_volumes_of_one_group_are_planned_as_fit() -> None:
    """A thousand executors with a volume each would wait for as long as others get new pods."""
    spec = make_pod().spec
    executors = [
        make_pod(f"e{i:03}", "spark", spec=spec, claims=(f"c{i}",), owner=None) for i in range(100)
    ]
    assert len(group_pods(executors)) == 1
    found = deferred(*executors, created(1), steps_max=16 * 1_000_000)
    names = [name for _, name in found]
    assert 0 < len(names) < 100
    assert names == sorted(pod.key.name for pod in executors)[-len(names) :]
    assert found == deferred(*reversed(executors), created(1), steps_max=16 * 1_000_000)


def selecting(count: int, *keys: str, values: int = 1, lines: int = 200) -> list[Any]:
    """Pods that each compare nodes with lines of their own about these labels."""
    return [
        make_pod(
            f"p{i:03}",
            "greedy",
            cpu=f"{i + 1}m",
            node_affinity=NodeSelector(
                terms=(
                    NodeSelectorTerm(
                        expressions=tuple(
                            Requirement(
                                key=keys[j % len(keys)],
                                operator="NotIn",
                                values=tuple([f"x{i}-{j}-{n}" for n in range(values)]),
                            )
                            for j in range(lines)
                        )
                    ),
                )
            ),
        )
        for i in range(count)
    ]


def test_lines_are_charged_for_all_nodes_that_they_tell_apart() -> None:
    """Lines about host names are compared with every node: a plan of 1,000 nodes took 20 s."""
    enough = 60_000_000
    assert deferred(*selecting(100, "fleet", "sector", ZONE), steps_max=enough) == []
    assert deferred(*selecting(100, "example.com/none"), steps_max=enough) == []
    assert len(deferred(*selecting(100, HOSTNAME), steps_max=enough)) > 20
    named = selecting(100, "metadata.name", "sector")
    assert len(deferred(*named, steps_max=enough)) > 20
    assert deferred(*selecting(100, HOSTNAME, lines=2), steps_max=enough) == []
    many = selecting(100, HOSTNAME, lines=2, values=2000)
    assert len(deferred(*many, steps_max=enough)) > 20


def test_selectors_of_claims_are_charged_for_the_volumes_they_are_compared_with() -> None:
    """Claims with hundreds of lines each beside hundreds of disks made each plan take seconds."""
    lines = [Requirement(key=f"k{i}", operator="DoesNotExist") for i in range(256)]
    long = LabelSelector(match_expressions=tuple(lines))
    pods = [make_pod(f"p{i:03}", "greedy", claims=(f"c{i}",)) for i in range(50)]
    for selector, volumes, some in ((long, 100, True), (long, 1, False), (None, 100, False)):
        asked = [(selector, volumes)]
        found = deferred(*pods, steps_max=10_000_000, claims=lambda _, asked=asked: asked)
        assert bool(found) == some


def test_shares_do_not_depend_on_the_order_of_the_snapshot() -> None:
    """Two replicas would plan differently from the same cluster."""
    pods = [*kinds("a", 60), *kinds("b", 40), *kinds("c", 3)]
    found = deferred(*pods, steps_max=10_000_000)
    assert found == deferred(*reversed(pods), steps_max=10_000_000)
    assert {namespace for namespace, _ in found} == {"a", "b"}


def test_deferred_pod_is_reported_with_its_own_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its owner would look for a fleet that refuses it."""
    monkeypatch.setattr("reconciler.planner.plan_opening.STEPS_MAX", 1)
    made = plan(make_snapshot(make_pod("p", PEACEFUL)), make_settings(make_fleet_settings()))
    (refused,) = made.unplaceable
    assert [r.code for r in refused.reasons] == ["over-work-budget"]
    assert PEACEFUL in refused.reasons[0].detail
