"""Several nodes are replaced together by fewer or cheaper ones (docs/scale-in.md)."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from reconciler.model.actions import (
    DRAIN_STARTED,
    REPLACEMENT_SET,
    REPLACEMENT_SET_FAILED,
    EvictPod,
    TaintNode,
)
from reconciler.model.cluster import Node, Taint
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import FleetKey
from reconciler.model.plan import Plan
from reconciler.model.text import rfc3339
from reconciler.planner.disruption.drains.replacement_sets import encode
from reconciler.planner.disruption_settings import (
    DisruptionBudget,
    DisruptionReason,
    ScaleInSettings,
)
from tests.builders import (
    HOME,
    NOW,
    ago,
    make_fleet_settings,
    make_node,
    make_pod,
    make_settings,
)
from tests.unit.planner.disruption.scale_in import scene
from tests.unit.planner.disruption.scale_in.consolidation import SMALL, planned, raised
from tests.unit.planner.disruption.scale_in.scene import (
    annotations_set,
    drained,
    kept,
    moves,
    on,
    told,
    unneeded,
)

MID = make_fleet_settings("mid", cpu=8, memory="32Gi", price="0.16")
FLEETS = (MID, SMALL)
"""Three nodes of 4 CPU at 0.30 USD/h, or one of 8 CPU at 0.16."""
NAMES = ("a", "b", "c")


def decided(seconds: float) -> str:
    """The annotation of a set that one node of 8 CPU was asked for, so long ago."""
    return encode(ago(seconds), {FleetKey(name="primary-mid", region=HOME): 1}, 140_000_000)


def nodes(annotations: dict[str, str] | None = None, **changed: Any) -> list[Node]:
    """Three nodes of 4 CPU."""
    noted = FrozenMap(annotations or {})
    return [make_node(name, SMALL, annotations=noted, **changed) for name in NAMES]


def pods(cpu: str = "2500m", **changed: Any) -> list[Any]:
    """A pod on each that would fit on no other of them."""
    return [on(name, cpu=cpu, **changed) for name in NAMES]


def of(*objects: Any, **changed: Any) -> Plan:
    """The plan for these objects; `small` is the target of the 8-CPU fleet."""
    return planned(*objects, fleets=changed.pop("fleets", FLEETS), **changed)


def test_nodes_that_a_larger_one_can_replace_are_decided_on_together() -> None:
    """None of them could be replaced alone: the larger node costs more than each."""
    made = of(*nodes(), *pods())
    assert raised(made) == [("primary-mid", 1, "consolidation")]
    text = decided(0)
    assert annotations_set(made) == {(name, "replacement-set", text) for name in NAMES}
    assert told(made, TaintNode) + told(made, EvictPod) == []
    assert set(kept(made).values()) == {"consolidation"}


def test_set_is_dated_by_the_clock_that_dates_its_new_nodes() -> None:
    """With our clock a minute ahead its new node had come too early, and was not waited for."""
    made = of(*nodes(), *pods(), server_time=ago(60))
    assert annotations_set(made) == {(name, "replacement-set", decided(60)) for name in NAMES}


def test_a_roomier_node_is_chosen_where_the_cheapest_ones_are_packed_too_tightly() -> None:
    """13.2 CPUs fit on 14 at 0.35 USD/h, but not as kube-scheduler spreads them; on 16 they do."""
    sizes = (("six", 6, "0.16"), ("eight", 8, "0.19"), ("sixteen", 16, "0.37"))
    fleets = tuple(make_fleet_settings(n, cpu=c, memory="64Gi", price=p) for n, c, p in sizes)
    requests = {
        "a": ("1700m", "1700m", "1700m"), "b": ("1300m", "2500m"), "c": ("900m", "900m", "2500m")
    }  # fmt: skip
    placed = [on(n, f"{n}-{i}", cpu=c) for n, row in requests.items() for i, c in enumerate(row)]
    made = of(*(make_node(name, fleets[0]) for name in NAMES), *placed, small=3, fleets=fleets)
    assert raised(made) == [("primary-sixteen", 1, "consolidation")]


@pytest.mark.parametrize(
    "fleets",
    [
        (replace(MID, max_capacity=0), SMALL),
        (make_fleet_settings("mid", cpu=8, memory="32Gi", price="0.29"), SMALL),
        (MID, replace(SMALL, min_capacity=2)),
        (MID, replace(SMALL, scale_in=ScaleInSettings(move_cost_usd=Decimal("0.05")))),
    ],
    ids=["at its maximum", "saves under 5 %", "at its minimum", "moves cost more"],
)
def test_nothing_is_decided_that_limits_or_money_forbid(fleets: tuple[Any, ...]) -> None:
    """A decision that cannot be carried out buys nodes for nothing."""
    made = of(*nodes(), *pods(), fleets=fleets)
    assert raised(made) == []
    assert annotations_set(made) == set()


def test_empty_node_that_the_fleet_can_do_without_leaves_no_set_to_look_for() -> None:
    """Planning ended with an error as soon as a node was empty in a fleet of a minimum."""
    minimum = replace(SMALL, min_capacity=2)
    made = of(*nodes(), on("a", cpu="2500m"), on("b", cpu="2500m"), fleets=(MID, minimum))
    assert raised(made) == []
    assert made.cost.hourly_usd_after <= made.cost.hourly_usd_before


@pytest.mark.parametrize(("reasons", "asks"), [(["consolidation"], 0), (["drifted"], 1)])
def test_nothing_is_bought_for_nodes_that_a_disruption_budget_keeps(
    reasons: list[DisruptionReason], asks: int
) -> None:
    """The new nodes would run beside the old ones until the set is given up."""
    budget = DisruptionBudget(nodes=0, reasons=frozenset(reasons))
    made = of(*nodes(), *pods(), disruption_budgets=(budget,))
    assert len(raised(made)) == asks


def test_a_set_leaves_as_many_nodes_as_the_minimum_asks_for_when_idle_ones_have_gone() -> None:
    """A spare goes when its time is over, and the minimum would hold the last node of the set."""
    spares = ScaleInSettings(type_spares=1, type_idle_threshold_seconds=3600)
    fleets = (MID, replace(SMALL, min_capacity=1, scale_in=spares))
    made = of(*nodes(), *pods(), unneeded("spare", SMALL, 1000), fleets=fleets)
    assert raised(made) == [("primary-mid", 1, "consolidation")]
    assert len([each for each in annotations_set(made) if each[1] == "replacement-set"]) == 2


def test_a_set_whose_nodes_are_held_by_the_minimum_is_given_up() -> None:
    """The sector would wait for it for an hour."""
    last = nodes({REPLACEMENT_SET: decided(1000)})[0]
    new = make_node("new", MID, created_at=ago(900), ready_changed_at=ago(890))
    fleets = (MID, replace(SMALL, min_capacity=1))
    made = of(last, on("a"), new, small=1, fleets=fleets)
    assert ("a", "replacement-set", None) in annotations_set(made)


def test_pods_that_came_a_short_time_ago_are_let_alone() -> None:
    """A wave of Jobs would have its nodes replaced while it runs."""
    assert raised(of(*nodes(), *pods(started_at=ago(590)))) == []
    assert raised(of(*nodes(), *pods(started_at=ago(610))))


def test_a_sector_to_which_a_node_came_a_short_time_ago_is_not_at_rest() -> None:
    """Single nodes often become superfluous around a new one, with far fewer moves."""
    full, pod = make_node("new", SMALL), on("new", cpu="3500m")
    for seconds, asks in ((590, False), (610, True)):
        new = replace(full, created_at=ago(seconds))
        assert bool(raised(of(*nodes(), *pods(), new, pod))) is asks


def test_a_sector_that_buys_is_not_at_rest() -> None:
    """The nodes of the set may be needed."""
    made = of(*nodes(), *pods(), make_pod("waits", cpu="3500m"))
    assert "consolidation" not in {policy for *_, policy in raised(made)}


@pytest.mark.parametrize(("timers", "asks"), [(0, True), (2, False)])
def test_a_sector_with_timers_is_not_at_rest_between_their_turns(timers: int, asks: bool) -> None:
    """The nodes with timers leave in time, and the set's pods may need the others' places."""
    settings = make_settings(*FLEETS, consolidation=True)
    timed = [unneeded(f"timed-{n:02}", SMALL, 30) for n in range(timers)]
    filled = [make_node(f"full-{n:02}", SMALL) for n in range(40 - timers)]
    little = [on(node.name, cpu="3500m" if node in filled else "1") for node in [*timed, *filled]]
    objects = [*nodes(), *pods(), *timed, *filled, *little]
    turns = [NOW + timedelta(seconds=10 * number) for number in range(6)]
    made = [scene.planned(settings, *objects, at=at) for at in turns]
    assert {bool(raised(plan)) for plan in made} == {asks}


def test_a_sector_in_which_a_timer_starts_is_not_at_rest() -> None:
    """The set moves the pods of the cheap node too, at once, and buys a node like it again."""
    dear = make_fleet_settings("dear", price="0.30")
    found = (make_node("d", dear), make_node("s", SMALL), on("d", cpu="3"), on("s", cpu="3"))
    made = of(*found, fleets=(SMALL, dear), small=1)
    assert raised(made) == []
    assert {(name, key) for name, key, _ in annotations_set(made)} == {("d", "unneeded-since")}


def test_a_node_that_can_go_by_itself_is_in_no_set_before_its_turn() -> None:
    """It has no timer yet, and a full node beside it would be replaced by one like it."""
    dear = make_fleet_settings("dear", price="0.30")
    settings = make_settings(SMALL, dear, consolidation=True)
    full = [make_node(f"full-{n:02}", SMALL) for n in range(40)]
    objects: list[Any] = [make_node("d", dear), *full, *(on(n.name, cpu="3500m") for n in full)]
    turns = [NOW + timedelta(seconds=10 * number) for number in range(6)]
    made = [scene.planned(settings, *objects, on("d", cpu="3500m"), at=at) for at in turns]
    assert not any(map(raised, made))
    assert {"d" in {name for name, *_ in annotations_set(plan)} for plan in made} == {True, False}


@pytest.mark.parametrize(("seconds", "asks"), [(0, True), (1, False), (9, False), (10, True)])
def test_sets_are_looked_for_in_the_first_plan_of_every_ten_seconds(
    seconds: float, asks: bool
) -> None:
    """A sector at rest costs nothing in the plans that another sector's changes cause."""
    settings = make_settings(*FLEETS, consolidation=True)
    at = NOW + timedelta(seconds=seconds)
    previous_at = NOW if seconds else None
    made = scene.planned(settings, *nodes(), *pods(), at=at, previous_at=previous_at)
    assert bool(raised(made)) is asks


def test_while_the_new_node_comes_nothing_is_asked_for_again() -> None:
    """The target would climb with every cycle."""
    made = of(*nodes({REPLACEMENT_SET: decided(30)}), *pods(), small=1)
    assert raised(made) == []
    assert annotations_set(made) == set()
    assert set(kept(made).values()) == {"consolidation"}
    soft = [a for a in made.actions if isinstance(a, TaintNode)]
    assert sorted(a.node for a in soft) == list(NAMES)
    assert {a.taint.effect for a in soft} == {"PreferNoSchedule"}


def test_when_it_has_come_the_nodes_leave_one_after_the_other() -> None:
    """Each is drained within the limits, and the new node does not go though it is idle."""
    new = make_node("new", MID, created_at=ago(900), ready_changed_at=ago(890))
    made = of(*nodes({REPLACEMENT_SET: decided(1000)}), *pods(), new, small=1)
    assert told(made, TaintNode) == ["a"]
    assert moves(made) == {"on-a": "new"}
    assert raised(made) == []
    assert kept(made) == {
        "b": "max-non-empty-at-once", "c": "max-non-empty-at-once", "new": "consolidation",
    }  # fmt: skip


def test_a_set_whose_new_node_takes_no_pods_is_given_up_and_rests() -> None:
    """It would be waited for, and kept, without an end."""
    taint = Taint(key="team", value="x", effect="NoSchedule")
    new = make_node("new", MID, created_at=ago(60), taints=(taint,))
    made = of(*nodes({REPLACEMENT_SET: decided(100)}), *pods(), new, small=1)
    failed = f"{rfc3339(ago(0))}/1"
    expected: set[tuple[str, str, str | None]]
    expected = {(name, "replacement-set", None) for name in NAMES}
    expected |= {(name, "replacement-set-failed", failed) for name in NAMES}
    assert {each for each in annotations_set(made) if each[0] in NAMES} == expected
    assert raised(made) == []


def test_a_set_whose_new_node_has_a_startup_taint_still_waits() -> None:
    """Given up, the new node would have been bought for nothing."""
    taint = Taint(key="node.kubernetes.io/not-ready", value="", effect="NoSchedule")
    new = make_node("new", MID, created_at=ago(2), taints=(taint,))
    made = of(*nodes({REPLACEMENT_SET: decided(100)}), *pods(), new, small=1)
    assert annotations_set(made) == set()
    assert [code for name, code in kept(made).items() if name in NAMES] == ["consolidation"] * 3


@pytest.mark.parametrize(
    ("seconds", "count", "asks"),
    [(290, 1, 0), (310, 1, 1), (1190, 2, 0), (1210, 2, 1), (86_000, 99, 0)],
)
def test_a_set_that_failed_rests_four_times_as_long_each_time(
    seconds: float, count: int, asks: int
) -> None:
    """Nodes would be bought again and again for a set that cannot go."""
    noted = {REPLACEMENT_SET_FAILED: f"{rfc3339(ago(seconds))}/{count}"}
    assert len(raised(of(*nodes(noted), *pods()))) == asks


@pytest.mark.parametrize("seconds", [890, 910])
def test_a_new_node_that_does_not_come_is_waited_for_as_long_as_any(seconds: float) -> None:
    """The time of `instance_init_time`, after which its fleet is asked no more."""
    made = of(*nodes({REPLACEMENT_SET: decided(seconds)}), *pods(), small=1)
    given_up = {name for name, key, value in annotations_set(made) if value is None}
    assert given_up == (set(NAMES) if seconds > 900 else set())


def test_a_set_is_given_up_when_consolidation_is_switched_off() -> None:
    """Whoever switches it off wants no more moves."""
    new = make_node("new", MID, created_at=ago(60))
    members = nodes({REPLACEMENT_SET: decided(100)})
    made = of(*members, *pods(), new, small=1, consolidation=False)
    assert told(made, TaintNode) == []
    assert {n for n, key, value in annotations_set(made) if value is None} >= set(NAMES)


@pytest.mark.parametrize(
    "text",
    [
        "", "x", "[]", "null", "{}", "1" * 5_000, "[" * 1_999, '{"at": 1, "new": {}}',
        '{"at": "2026-01-31T11:59:00Z", "new": {"primary-mid@eu-west-1": "1"}}',
        '{"at": "2026-01-31T11:59:00Z", "new": {"primary-mid@eu-west-1": true}}',
        '{"at": "2026-01-31T11:59:00Z", "new": {"primary-mid@eu-west-1": -1}}',
        '{"at": "2026-01-31T11:59:00Z", "new": [1]}',
        '{"at": "yesterday", "new": {"primary-mid@eu-west-1": 1}}',
    ],
)  # fmt: skip
def test_an_annotation_that_cannot_be_read_is_taken_off(text: str) -> None:
    """Somebody edited it by hand."""
    made = of(*nodes({REPLACEMENT_SET: text}), *pods("3900m"))
    assert annotations_set(made) == {(name, "replacement-set", None) for name in NAMES}


def test_a_set_with_fleets_that_nobody_knows_is_given_up_in_time() -> None:
    """A fleet was renamed since."""
    text = encode(ago(1000), {FleetKey(name="gone", region=HOME): 1}, 1)
    made = of(*nodes({REPLACEMENT_SET: text}), *pods())
    assert {n for n, key, value in annotations_set(made) if value is None} == set(NAMES)


OTHER = make_fleet_settings("small", "other", expire_after_seconds=3000)


def late(seconds: float = 5000) -> list[Any]:
    """A set whose new node came long ago, and whose time is over."""
    new = make_node("new", MID, created_at=ago(seconds - 100))
    return [*nodes({REPLACEMENT_SET: decided(seconds)}), *pods(), new]


def given_up(made: Plan) -> set[str]:
    """The nodes whose set is given up."""
    return {name for name, key, value in annotations_set(made) if not value and "set" in key}


@pytest.mark.parametrize(("seconds", "lost"), [(5000, False), (87_000, False), (88_000, True)])
@pytest.mark.parametrize("budget", [False, True])
def test_a_set_that_waits_for_its_turn_is_not_given_up_for_a_day(
    seconds: float, lost: bool, budget: bool
) -> None:
    """Behind the drains of other nodes it was given up half done, and what it did was undone."""
    others: list[Any] = [] if budget else [drained("d", OTHER), on("d", sector="other")]
    others += [make_node("room", OTHER, created_at=ago(60))]
    budgets = (DisruptionBudget(nodes=0, reasons=frozenset({"consolidation"})),) if budget else ()
    made = of(*late(seconds), *others, small=1, fleets=(*FLEETS, OTHER), disruption_budgets=budgets)
    assert given_up(made) == (set(NAMES) if lost else set())
    assert told(made, TaintNode) == []


def test_a_set_that_its_own_pods_keep_is_given_up_in_time() -> None:
    """Nothing else in its sector may go to save money meanwhile."""
    keeps = FrozenMap({"karpenter.sh/do-not-disrupt": "true"})
    members = nodes({REPLACEMENT_SET: decided(5000)})
    new = make_node("new", MID, created_at=ago(4900))
    made = of(*members, *pods(annotations=keeps), new, small=1)
    assert given_up(made) == set(NAMES)


def test_a_node_of_a_set_goes_before_an_expired_one() -> None:
    """The new node stood there half empty until the last expired node of the cluster had gone."""
    expired = [make_node("x", OTHER), on("x", sector="other")]
    room = make_node("room", OTHER, created_at=ago(60))
    made = of(*late(1000), *expired, room, small=1, fleets=(*FLEETS, OTHER))
    assert told(made, TaintNode) == ["a"]
    assert kept(made)["x"] == "max-non-empty-at-once"


def test_the_time_of_a_decision_in_the_future_counts_as_now() -> None:
    """A clock that was ahead would hold the set until then."""
    made = of(*nodes({REPLACEMENT_SET: decided(-60)}), *pods(), small=1)
    assert raised(made) == []
    assert set(kept(made).values()) == {"consolidation"}


def test_drain_that_goes_on_sends_no_pod_to_another_node_of_its_set() -> None:
    """The fullest node that has room would be one that leaves next: the pod would move twice."""
    started = {DRAIN_STARTED: rfc3339(ago(30)), REPLACEMENT_SET: decided(1000)}
    leaving = make_node("a", SMALL, annotations=FrozenMap(started), draining=True)
    others = nodes({REPLACEMENT_SET: decided(1000)})[1:]
    new = make_node("new", MID, created_at=ago(900), ready_changed_at=ago(890))
    made = of(leaving, *others, on("a"), on("b", cpu="2500m"), on("c", cpu="2500m"), new, small=1)
    assert moves(made) == {"on-a": "new"}


def test_node_of_a_set_stays_when_its_pods_fit_on_others_of_the_set_alone() -> None:
    """Pods that came since have taken the new node."""
    new = make_node("new", MID, created_at=ago(900), ready_changed_at=ago(890))
    taken = on("new", cpu="7500m")
    made = of(*nodes({REPLACEMENT_SET: decided(1000)}), *pods("1500m"), new, taken, small=1)
    assert moves(made) == {}
    assert {n for n, key, value in annotations_set(made) if value is None} >= set(NAMES)
