"""Nodes that registered and never took a pod: their fleet makes no usable nodes."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.model.actions import SetCapacity, TerminateInstance
from reconciler.model.cluster import Node, Pod, Taint, Toleration
from reconciler.model.fleet import Fleet
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import InstanceId
from reconciler.model.plan import Plan
from reconciler.model.saved_state import SavedFleetState, StuckEnd
from reconciler.planner.disruption_settings import DisruptionBudget
from reconciler.planner.planner import plan
from reconciler.planner.settings import Headroom, RaiseLimits
from tests.builders import (
    HOME,
    ago,
    make_cloud,
    make_fleet,
    make_fleet_settings,
    make_instance,
    make_node,
    make_pod,
    make_settings,
    make_snapshot,
)
from tests.unit.planner.disruption.scale_in.scene import full, on, told, unneeded

SMALL = make_fleet_settings(min_capacity=0)
LARGE = make_fleet_settings("large", cpu=8, memory="32Gi", price="0.30")
AGENT = Taint(key="node.cilium.io/agent-not-ready", value="", effect="NoSchedule")
EVERYTHING = Toleration(operator="Exists")
"""As network plugins have it."""
ONLY_THESE = {"raise_limits": RaiseLimits(nodes_per_cycle=0)}
"""No fleet may be raised, so that pods have the nodes that launch and no others."""
AGE = 1000.0
"""Seconds; `instance_init_time` is 900 s."""


def dead(name: str = "a", age: float = AGE, **changed: Any) -> Node:
    """A node that kubelet registered as not Ready, and that stays so."""
    changed = {"created_at": ago(age), "ready_changed_at": ago(age)} | changed
    return make_node(name, SMALL, ready=False, **changed)


def made_of(
    *objects: Node | Pod,
    launched: dict[str, float] | None = None,
    target: int | None = None,
    small: Any = SMALL,
    settings: dict[str, Any] | None = None,
    **changed: Any,
) -> Plan:
    """The plan of a small fleet, and an empty larger one, two full lists after the start."""
    nodes = [o for o in objects if isinstance(o, Node) and "fleet" in o.labels]
    own = [n for n in nodes if n.labels["fleet"] == SMALL.name]
    live: Fleet = make_fleet(small, len(own) if target is None else target)
    ages = launched or {}
    found = [
        make_instance(n, live, launched_at=ago(ages[n.name]) if n.name in ages else n.created_at)
        for n in own
    ]
    cloud = make_cloud(live, make_fleet(LARGE), instances=found)
    snapshot = make_snapshot(*objects, cloud=cloud, **{"relists": 2, **changed})
    return plan(snapshot, make_settings(small, LARGE, **(settings or {})))


def row(made: Plan) -> int:
    """How many instances in a row of the small fleet never became usable nodes."""
    return next((s.stuck_in_a_row for s in made.fleet_states if s.fleet == SMALL.name), 0)


def ends(made: Plan) -> list[tuple[str, bool]]:
    """The nodes whose instances the plan ends, and whether the target falls with them."""
    return [(str(a.node), a.decrement) for a in made.actions if isinstance(a, TerminateInstance)]


def joined(made: Plan) -> int:
    """How many nodes of the small fleet count as joined."""
    return next(fleet.joined for fleet in made.fleets if fleet.fleet == SMALL.name)


@pytest.mark.parametrize(("age", "counted"), [(899.0, 0), (900.0, 1)])
def test_node_that_was_not_once_ready_counts_as_a_failure_of_its_fleet(
    age: float, counted: int
) -> None:
    """An image without its network plugin was launched without end, and the verdict was OK."""
    made = made_of(dead(age=age))
    assert (row(made), len(ends(made)), joined(made)) == (counted, counted, 0)


@pytest.mark.parametrize("behind", [0, 30, 119])
def test_node_is_joining_or_a_failure_and_nothing_between(behind: float) -> None:
    """It counted as joined until the slowest clock agreed, and another was bought beside it."""
    made = made_of(dead(age=900), make_pod(), server_time=ago(behind))
    assert (joined(made), row(made)) == (0, 1)
    assert [f.target for f in made.fleets] == [1, 0]


def test_saved_state_says_what_is_the_matter() -> None:
    """Nobody would know whether to read the console output or to describe the node."""
    (state,) = made_of(dead()).fleet_states
    assert state.stuck_because == "node a was never Ready"


@pytest.mark.parametrize(("number", "falls"), [(1, False), (2, False), (3, True)])
def test_target_falls_with_the_third_dead_node_that_nothing_asks_for(
    number: int, falls: bool
) -> None:
    """EC2 launched, and we ended, one every six minutes for nobody."""
    names = "abc"[:number]
    made = made_of(*map(dead, names))
    assert ends(made) == [(name, falls) for name in names]
    assert [f.target for f in made.fleets] == [0 if falls else number, 0]


def test_target_stays_where_pods_wait() -> None:
    """They would be without a node, and buy another at once."""
    made = made_of(dead(), dead("b"), dead("c"), make_pod(), settings=ONLY_THESE)
    assert {lowered for _, lowered in ends(made)} == {False}
    assert not [a for a in made.actions if isinstance(a, SetCapacity)]


@pytest.mark.parametrize(("cpu", "falls"), [("3500m", False), ("7", True), ("64", True)])
def test_pod_that_no_node_of_the_fleet_suits_asks_for_none(cpu: str, falls: bool) -> None:
    """One pod that is too large for everything kept EC2 launching machines that die."""
    pods = [make_pod(name, cpu=cpu) for name in "pqr"]
    made = made_of(dead(), dead("b"), dead("c"), *pods, settings=ONLY_THESE)
    assert {lowered for _, lowered in ends(made)} == {falls}


def test_target_never_falls_below_the_minimum() -> None:
    """The fleet would be raised to it again in the next plan."""
    least = replace(SMALL, min_capacity=1)
    made = made_of(dead(), dead("b"), dead("c"), small=least)
    assert sorted(lowered for _, lowered in ends(made)) == [False, True, True]


def test_demand_moves_after_three_in_a_row() -> None:
    """Pods waited for ever beside a fleet that works."""
    before = SavedFleetState(
        fleet=SMALL.name, region=HOME, stuck_in_a_row=2, last_stuck_launched_at=ago(5000)
    )
    made = made_of(dead(), make_pod(), fleet_states=(before,))
    assert [p.fleet for p in made.placements] == [LARGE.name]
    assert ends(made) == [("a", True)]
    status = next(fleet for fleet in made.fleets if fleet.fleet == SMALL.name)
    assert status.unavailable_kind == "never-joined"
    assert "the last: node a was never Ready" in status.unavailable


def test_row_ends_where_the_same_instances_turn_ready_after_all() -> None:
    """A registry was out of reach for a while; their fleet counted as failing until the next."""
    before = SavedFleetState(
        fleet=SMALL.name,
        region=HOME,
        stuck_in_a_row=3,
        last_stuck_launched_at=ago(AGE),
        failures=1,
        unavailable_until=ago(-60),
    )
    late = make_node("a", SMALL, created_at=ago(AGE), ready_changed_at=ago(30))
    made = made_of(late, full("a"), fleet_states=(before,))
    assert (row(made), [f.unavailable for f in made.fleets]) == (0, ["", ""])
    short = replace(before, reason="InsufficientInstanceCapacity", last_error_at=ago(60))
    made = made_of(late, full("a"), fleet_states=(short,))
    assert (row(made), [f.unavailable_kind for f in made.fleets]) == (0, ["capacity", ""])
    still = make_node("b", SMALL, created_at=ago(AGE + 1), ready_changed_at=ago(30))
    found = (dead("a"), still, full("b"))
    assert row(made_of(*found, fleet_states=(before,))) == 3


@pytest.mark.parametrize(
    "changed",
    [
        {"ready_changed_at": ago(AGE - 121)},
        {"ready_changed_at": None},
        {"created_at": ago(9000), "ready_changed_at": ago(AGE)},
        {"unreadable": True},
        {"deleting": True},
    ],
    ids=["was Ready", "unknown since when", "fell silent", "unreadable", "deleting"],
)
def test_node_that_may_have_been_ready_is_no_failure_of_its_fleet(changed: dict[str, Any]) -> None:
    """A node that worked and fell silent would close its fleet."""
    assert row(made_of(dead(**changed))) == 0


@pytest.mark.parametrize(("started", "counted"), [(60.0, 1), (100.0, 0)])
def test_condition_may_become_unknown_soon_after_the_registration(
    started: float, counted: int
) -> None:
    """A kubelet that registers and dies at once: Kubernetes makes its condition Unknown."""
    made = made_of(dead(ready_changed_at=ago(AGE - 2 * started)))
    assert row(made) == counted


def test_pod_that_was_bound_proves_that_the_node_was_ready() -> None:
    """A clock of the machine may be wrong; kube-scheduler binds no pod to such a node."""
    assert row(made_of(dead(), on("a"))) == 0
    tolerates = on("a", tolerations=(EVERYTHING,))
    assert row(made_of(dead(), tolerates)) == 1


def test_node_that_was_registered_again_has_its_time_anew() -> None:
    """Somebody deleted the Node object of a machine that had run for days."""
    again = dead(age=60)
    assert row(made_of(again, launched={"a": 90_000})) == 0
    assert row(made_of(dead(), launched={"a": 90_000})) == 1


def test_machine_that_was_started_again_counts_from_that_start() -> None:
    """The Node of a stopped instance stays, with a condition from before it stopped."""
    old = dead(age=90_000, ready_changed_at=ago(50_000))
    assert row(made_of(old, launched={"a": 600})) == 0
    assert row(made_of(old, launched={"a": AGE})) == 1


def test_ends_count_towards_the_limit_of_stuck_instances() -> None:
    """A wrong picture would have ended a fleet's nodes by the dozen."""
    used = tuple(StuckEnd(instance=InstanceId(f"i-past-{n}"), at=ago(60)) for n in range(19))
    made = made_of(dead("a"), dead("b"), stuck_ends=used)
    assert len(ends(made)) == 1
    assert [h.code for h in made.held] == ["stuck-cap"]
    assert len(made.stuck_ends) == 20


NAMES = [f"d{number}" for number in range(6)]


def test_dead_nodes_are_no_outage_while_others_are_ready() -> None:
    """Twelve empty machines were billed for ever, as the network was to blame."""
    made = made_of(*map(dead, NAMES), make_node("well", SMALL), full("well"))
    assert ends(made) == [(name, True) for name in NAMES[:5]]


def test_first_list_after_an_outage_says_nothing_about_fleets() -> None:
    """The API server had heard no kubelet of a burst since it registered: another was bought."""
    pods = [full("well"), *(make_pod(name) for name in NAMES)]
    made = made_of(*map(dead, NAMES), make_node("well", SMALL), *pods, relists=1)
    assert (row(made), ends(made)) == (0, [])
    assert [f.target for f in made.fleets] == [7, 0]


def test_dead_nodes_without_any_other_may_be_an_outage() -> None:
    """The API server hears no kubelet: what was just launched looks dead, and works."""
    made = made_of(*map(dead, NAMES))
    assert ends(made) == []
    assert {k.code for k in made.kept} == {"not-ready"}


@pytest.mark.parametrize(("region", "ended"), [(HOME, 5), ("eu-west-1", 0)])
def test_node_of_others_shows_that_the_region_has_no_outage(region: Any, ended: int) -> None:
    """The first fleet of a cluster had a broken image, beside a managed node group that works."""
    other = make_node("managed", region=region)
    assert len(ends(made_of(*map(dead, NAMES), other))) == ended


def test_many_fresh_nodes_in_an_outage_are_held() -> None:
    """The network failed while a burst was coming up, and all of the burst was ended."""
    silent = [dead(f"s{n}", created_at=ago(90_000), ready_changed_at=ago(AGE)) for n in range(4)]
    assert ends(made_of(*map(dead, NAMES), *silent)) == []


def test_node_with_work_that_counts_stays_by_the_existing_rules() -> None:
    """A pod that tolerates everything may run there all the same."""
    works = on("a", owner="Job", tolerations=(EVERYTHING,), phase="Running")
    made = made_of(dead(), replace(works, started_at=ago(600)))
    assert ends(made) == []
    assert "may-still-run" in {k.code for k in made.kept}


def test_headroom_waits_for_no_second_node_beside_a_dead_one() -> None:
    """Its target grew by one every six minutes, up to the limits of the account."""
    keeps = {"headroom": (Headroom(sector="primary", nodes=1),)}
    made = made_of(dead(), settings=keeps)
    assert ends(made) == [("a", False)]
    assert [f.target for f in made.fleets] == [1, 0]


def test_dead_node_does_not_use_up_a_disruption_budget() -> None:
    """It never served, and kept idle nodes that did from leaving."""
    one = {"disruption_budgets": (DisruptionBudget(nodes=1),)}
    idle = unneeded("idle", SMALL, created_at=ago(9000))
    held = dead(annotations=FrozenMap({"fleet-reconciler.io/do-not-disrupt": "true"}))
    made = made_of(held, idle, make_node("well", SMALL), full("well"), settings=one)
    assert told(made, type(made.actions[0])) == ["idle"]


def tainted(age: float = AGE, **changed: Any) -> Node:
    """A node that turned Ready, and whose agent never took its taint away."""
    changed = {"created_at": ago(age), "ready_changed_at": ago(age - 20)} | changed
    return make_node("a", SMALL, taints=(AGENT,), **changed)


def test_ready_node_that_keeps_a_start_up_taint_counts_too() -> None:
    """Headroom bought one, and ended it as idle, every six minutes."""
    made = made_of(tainted())
    assert (row(made), joined(made)) == (1, 0)
    assert made.fleet_states[0].stuck_because == "node a is Ready and keeps a start-up taint"


def test_start_up_taint_that_came_back_does_not_count() -> None:
    """The agent restarts, and adds it again; a pod shows that the node was without it."""
    assert row(made_of(tainted(), on("a"))) == 0
