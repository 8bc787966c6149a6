"""A version whose first node does not work halts its rolling update."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.model.actions import (
    DRAIN_STARTED,
    DRAINING_TAINT,
    EvictPod,
    TerminateInstance,
    UntaintNode,
)
from reconciler.model.cluster import Node, Pod, Taint
from reconciler.model.containers import ContainerState
from reconciler.model.fleet import Instance
from reconciler.model.ids import InstanceId
from reconciler.model.text import rfc3339
from reconciler.planner.disruption_settings import RollingUpdate
from tests.builders import (
    ago,
    make_fleet,
    make_instance,
    make_node,
)
from tests.unit.planner.disruption.interrupted_nodes import targets
from tests.unit.planner.disruption.scale_in.scene import (
    annotations_set,
    full,
    kept,
    make_scene_fleet,
    on,
    told,
)
from tests.unit.planner.disruption.updated_fleet import (
    FLEET,
    NEW,
    OLD,
    made_of,
    marked,
    node,
    remembered,
    state,
    watched,
)
from tests.unit.planner.placed import drained


def never_joined() -> Instance:
    """An instance of version 8 that is no node 20 minutes after its launch."""
    sample = make_instance(
        make_node("x", FLEET), make_fleet(FLEET), launched_at=ago(1200), launch_template_version=NEW
    )
    return replace(sample, id=InstanceId("i-x"))


CILIUM = Taint(key="node.cilium.io/agent-not-ready", value="", effect="NoSchedule")
CRASHING = on("c", "app", restarts=3)


@pytest.mark.parametrize(
    ("objects", "more", "because"),
    [
        ((), [never_joined()], "i-x never became a node"),
        ((node("c", 1000, ready=False),), [], "c has not been Ready for 16m40s"),
        (
            (node("c", 1000, taints=(CILIUM,)),),
            [],
            "c has had the taint node.cilium.io/agent-not-ready for 16m40s",
        ),
        ((node("c", 120), CRASHING), [], "app on c was restarted 3 times"),
    ],
)
def test_version_that_does_not_work_halts_the_update(
    objects: tuple[Any, ...], more: list[Instance], because: str
) -> None:
    """One node is lost, and no other pod is moved."""
    batch: list[Node | Pod] = [node("a", mark=1, began=1300), node("b"), full("a"), full("b")]
    made = made_of(*batch, *objects, new="c", more=more, target=3)
    assert state(made) == "halted"
    (update,) = made.updates
    assert because in update.because
    assert marked(made) == {"a": None}
    assert drained(made) == []
    assert {k.code for k in made.kept} >= {"rolling-update-halted"}
    (saved,) = [m for m in made.fleet_states if m.halted_version]
    assert (saved.halted_version, saved.halted_because) == (NEW, update.because)


@pytest.mark.parametrize(("seconds_ago", "halts"), [(30, False), (1200, True)])
def test_node_that_starts_again_halts_an_update_only_when_it_does_not_come_back(
    seconds_ago: float, halts: bool
) -> None:
    """Out of a warm pool it has not been Ready for hours, and works."""
    back = node("c", 7 * 3600, ready=False, ready_changed_at=ago(6 * 3600))
    batch: list[Node | Pod] = [node("a", mark=1, began=1300), node("b"), full("a"), full("b")]
    made = made_of(*batch, back, new="c", started={"c": seconds_ago}, target=3)
    assert (state(made) == "halted") == halts
    (update,) = made.updates
    assert ("c has not been Ready for 20m" in update.because) == halts


def test_halted_update_gives_up_the_node_that_it_asked_for() -> None:
    """Its fleet would launch one after the other that never joins."""
    made = made_of(node("a"), node("b"), full("a"), full("b"), more=[never_joined()], target=3)
    ends = [(a.instance, a.decrement) for a in made.actions if isinstance(a, TerminateInstance)]
    assert ends == [("i-x", True)]
    assert targets(made) == []
    least = make_scene_fleet(min_capacity=3)
    nodes = [node("a", fleet=least), node("b", fleet=least)]
    made = made_of(*nodes, full("a"), full("b"), more=[never_joined()], target=3, fleet=least)
    ends = [(a.instance, a.decrement) for a in made.actions if isinstance(a, TerminateInstance)]
    assert ends == [("i-x", False)]


def test_failed_node_of_an_update_that_goes_on_is_replaced() -> None:
    """Its fleet would be one node short, as if the update asked for one less."""
    nodes: list[Node | Pod] = [node("a"), node("b"), node("c", 3000)]
    nodes += [full("a"), full("b"), full("c")]
    proven = watched(2400, canary_proven=True)
    made = made_of(*nodes, new="c", more=[never_joined()], target=4, fleet_states=proven)
    assert state(made) != "halted"
    ends = [(a.instance, a.decrement) for a in made.actions if isinstance(a, TerminateInstance)]
    assert ends == [("i-x", False)]


def test_halted_update_gives_up_no_more_nodes_than_its_minimum_allows() -> None:
    """Two failed nodes of one plan would take the fleet below its minimum; others count not."""
    least = make_scene_fleet(min_capacity=3)
    nodes: list[Node | Pod] = [node("a", fleet=least), node("b", fleet=least)]
    nodes += [full("a"), full("b")]
    failed = [never_joined(), replace(never_joined(), id=InstanceId("i-y"))]

    def ends(*more: Instance, target: int) -> dict[str, bool]:
        made = made_of(*nodes, more=list(more), target=target, fleet=least)
        assert state(made) == "halted"
        found = (a for a in made.actions if isinstance(a, TerminateInstance))
        return {a.instance: a.decrement for a in found}

    assert ends(*failed, target=4) == {"i-x": True, "i-y": False}
    older = replace(never_joined(), id=InstanceId("i-old"), launch_template_version=OLD)
    assert ends(older, never_joined(), target=4) == {"i-old": False, "i-x": True}


@pytest.mark.parametrize("emptied", [False, True])
@pytest.mark.parametrize("policy", ["rolling-update", "expiry"])
def test_drain_of_a_halted_update_is_given_back(policy: str, emptied: bool) -> None:
    """Its other pods went on to the new node on which the first one crashed, and it was ended."""
    started = {DRAIN_STARTED: rfc3339(ago(30))}
    taint = Taint(key=DRAINING_TAINT, value=policy, effect="NoSchedule")
    going = node("a", mark=1, began=300, taints=(taint,), annotations=started)
    left = [] if emptied else [on("a")]
    made = made_of(going, node("b"), full("b"), *left, node("c", 120), CRASHING, new="c")
    assert state(made) == "halted"
    ends, evictions = told(made, TerminateInstance), told(made, EvictPod)
    if policy == "rolling-update":
        assert (told(made, UntaintNode), ends, evictions) == (["a"], [], [])
        assert kept(made)["a"] == "rolling-update-halted"
        assert ("a", "drain-failed") not in {each[:2] for each in annotations_set(made)}
    else:
        assert told(made, UntaintNode) == [], "it goes for another reason"


def test_halt_lasts_until_the_version_changes() -> None:
    """The failed node is gone by then, and the next one would fail as well."""
    objects: list[Node | Pod] = [node("a"), node("b"), full("a"), full("b")]
    known = remembered(halted_version=NEW, halted_because="it did not work")
    made = made_of(*objects, fleet_states=known)
    assert state(made) == "halted"
    assert made.updates[0].because == "it did not work"
    assert marked(made) == {}
    made = made_of(*objects, fleet_states=remembered(halted_version="6", halted_because="old"))
    assert state(made) == "waiting"
    assert [m for m in made.fleet_states if m.halted_version] == []


def test_person_lets_a_halted_update_go_on() -> None:
    """The cause was another one; the same sign must not halt it at once again."""
    objects: list[Node | Pod] = [
        node("a"),
        node("b"),
        full("a"),
        full("b"),
        node("c", 120),
        CRASHING,
    ]
    known = remembered(halted_version=NEW, halted_because="it did not work")
    made = made_of(*objects, new="c", fleet_states=known, resumed_updates=("elsewhere",))
    assert state(made) == "halted"
    made = made_of(*objects, new="c", fleet_states=known, resumed_updates=(FLEET.name,))
    assert state(made) == "canary"
    (saved,) = [m for m in made.fleet_states if m.resumed_version]
    assert (saved.halted_version, saved.resumed_version) == ("", NEW)
    made = made_of(*objects, new="c", fleet_states=(saved,))
    assert state(made) == "canary"


def test_crash_loop_after_the_canary_is_no_reason_to_halt() -> None:
    """Some pod crashes every day in a large cluster."""
    objects: list[Node | Pod] = [node("a"), node("c", 1200), full("a"), CRASHING]
    assert state(made_of(*objects, new="c")) == "waiting"


LOOPS = (ContainerState(kind="container", waiting="CrashLoopBackOff", restarts=9),)


def ended(seconds: float, **changed: Any) -> dict[str, Any]:
    """A pod whose container runs again; it was restarted nine times, and last ended so long ago."""
    again = ContainerState(kind="container", restarts=9, ended_at=ago(seconds))
    return {"restarts": 9, "containers": (again,), "ready": True, **changed}


@pytest.mark.parametrize(
    ("on_old", "expected"),
    [
        ({"restarts": 9, "ready": False, "containers": LOOPS}, "canary"),
        (ended(20), "canary"),
        (ended(590, ready=False), "canary"),
        (ended(7200), "halted"),
        ({"restarts": 9, "ready": True}, "halted"),
        ({"restarts": 9, "ready": False, "containers": LOOPS, "namespace": "other"}, "halted"),
    ],
    ids=[
        "crashes-there-too",
        "runs-between-two-crashes",
        "runs-after-the-longest-pause",
        "crashed-hours-ago",
        "was-restarted-once",
        "of-another",
    ],
)
def test_pod_that_crashes_on_old_nodes_too_does_not_halt_the_update(
    on_old: dict[str, Any], expected: str
) -> None:
    """One Deployment in a crash loop stopped the updates of the whole cluster."""
    objects: list[Node | Pod] = [node("a"), node("b"), node("c", 120), full("b"), CRASHING]
    made = made_of(*objects, on("a", "app-2", owner=CRASHING.owner, **on_old), new="c")
    assert state(made) == expected


@pytest.mark.parametrize(
    ("state_of_init", "expected"),
    [
        ({"waiting": "CrashLoopBackOff"}, "halted"),
        ({}, "halted"),
        ({"terminated": "Completed", "exit_code": 0}, "canary"),
    ],
    ids=["crashes", "is-a-sidecar", "waited-for-something"],
)
def test_init_container_that_crashes_halts_the_update(
    state_of_init: dict[str, Any], expected: str
) -> None:
    """Most of what a new image breaks shows there: mounts, devices, the mesh's sidecar."""
    init = ContainerState(kind="init", restarts=9, **state_of_init)
    main = ContainerState(kind="container", waiting="PodInitializing")
    moved = on("c", "app", phase="Pending", containers=(init, main))
    made = made_of(node("a"), node("b"), node("c", 120), full("b"), moved, new="c")
    assert state(made) == expected
    if expected == "halted":
        assert made.updates[0].because == "pod ns/app on c was restarted 9 times"


@pytest.mark.parametrize(
    ("name", "halted", "done", "because"),
    [
        ("primary-small", True, True, "its halt is lifted"),
        ("primary-small", False, False, "it has no rolling update that is halted or rests"),
        (
            "primary-smal",
            True,
            False,
            "the config has no fleet of this name; did you mean primary-small?",
        ),
        ("all", True, False, "the config has no fleet of this name"),
    ],
)
def test_plan_says_what_came_of_a_resume(name: str, halted: bool, done: bool, because: str) -> None:
    """The annotation is taken off: whoever misspelt the fleet believed that it worked."""
    known = remembered(halted_version=NEW, halted_because="it did not work") if halted else ()
    made = made_of(node("a"), full("a"), fleet_states=known, resumed_updates=(name,))
    assert [(resume.fleet, resume.done, resume.because) for resume in made.resumes] == [
        (name, done, because)
    ]


@pytest.mark.parametrize(
    ("proven", "first"),
    [pytest.param(False, "b", id="canary"), pytest.param(True, "a", id="later")],
)
def test_node_with_a_pod_in_a_crash_loop_is_not_the_first_to_be_replaced(
    *, proven: bool, first: str
) -> None:
    """Its only replica crashed on the first new node as well, which halted the update."""
    loop = ContainerState(kind="container", restarts=9, waiting="CrashLoopBackOff")
    crashing = on("a", "app", restarts=9, containers=(loop,))
    known = remembered(canary_version=NEW, canary_proven=True) if proven else ()
    made = made_of(
        node("a", 9000),
        node("b"),
        crashing,
        on("b"),
        rules=RollingUpdate(batch_max=1),
        fleet_states=known,
    )
    assert list(marked(made)) == [first]
