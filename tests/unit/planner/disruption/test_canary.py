"""The first new node of a version is watched before others follow."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.model.cluster import Node, Pod, Taint, Toleration
from reconciler.model.plan import Plan
from tests.builders import NOW, ago
from tests.unit.planner.disruption.scale_in.scene import full, on
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

DAY = 86_400
PROVEN: dict[str, Any] = {
    "canary_version": NEW,
    "canary_since": ago(2 * DAY),
    "canary_proven": True,
}
RESTARTED = on("c", "app", restarts=3)
NOT_READY = Taint(key="node.kubernetes.io/not-ready", value="", effect="NoExecute")


def saved(made: Plan) -> tuple[str, float | None]:
    """The version that is watched according to the plan's state, and for how many seconds."""
    (found,) = [fleet_state for fleet_state in made.fleet_states if fleet_state.fleet == FLEET.name]
    since = found.canary_since
    return found.canary_version, None if since is None else (NOW - since).total_seconds()


def six(ready: bool, changed: float) -> list[Node | Pod]:
    """Half of six nodes are new, and whether all are Ready changed some seconds ago."""
    old, new = ("a", "b", "p"), ("c", "d", "e")
    nodes = [
        node(name, 30 * DAY if name in old else 2 * DAY, ready=ready, ready_changed_at=ago(changed))
        for name in (*old, *new)
    ]
    return [*nodes, *map(full, (*old, *new))]


def test_minute_without_network_does_not_halt_a_proven_version() -> None:
    """All kubelets were silent for 40 s, and the update stood still until a person came."""
    proven = remembered(**PROVEN)
    silent = made_of(*six(False, 40), new="c d e", fleet_states=proven)
    assert state(silent) == "paused"
    assert silent.updates[0].because == "none of the new nodes takes pods now"
    assert marked(silent) == {}
    back = made_of(*six(True, 130), RESTARTED, new="c d e", fleet_states=silent.fleet_states)
    assert state(back) == "waiting"
    assert len(marked(back)) == 2, "a batch, and not another canary"


def test_proven_version_stays_so_when_its_nodes_have_gone() -> None:
    """With nightly windows each night began with a canary of ten minutes."""
    made = made_of(node("a"), node("b"), full("a"), full("b"), fleet_states=remembered(**PROVEN))
    assert sorted(marked(made)) == ["a", "b"]
    assert saved(made) == (NEW, 2 * DAY)


def test_other_version_is_not_proven() -> None:
    """The next image may be the one that does not work."""
    older = remembered(canary_version=OLD, canary_since=ago(DAY))
    made = made_of(node("a"), node("b"), full("a"), full("b"), fleet_states=older)
    assert len(marked(made)) == 1
    assert saved(made) == (NEW, None)
    done = made_of(node("c"), full("c"), new="c", fleet_states=older)
    assert done.fleet_states == () or saved(done) == ("", None)


@pytest.mark.parametrize(("changed", "expected"), [(40, "canary"), (1000, "halted")])
def test_new_node_that_was_ready_counts_as_failed_only_after_a_while(
    changed: float, expected: str
) -> None:
    """Its kubelet was restarted, hours after it had joined."""
    new = node("c", 7200, ready=False, ready_changed_at=ago(changed))
    made = made_of(node("a"), node("b"), full("a"), full("b"), new, new="c")
    assert state(made) == expected


def test_new_node_whose_taint_is_put_on_again_counts_as_failed_only_after_a_while() -> None:
    """The taint not-ready goes some seconds after the node is Ready again."""
    new = node("c", 7200, ready_changed_at=ago(3), taints=(NOT_READY,))
    assert state(made_of(node("a"), full("a"), new, new="c")) == "canary"


@pytest.mark.parametrize("pods", [(), (RESTARTED,)])
def test_outage_halts_nothing(pods: tuple[Pod, ...]) -> None:
    """Old nodes are silent as well: that says nothing about the version."""
    nodes = [node(n, 9000, ready=False, ready_changed_at=ago(1200)) for n in ("a", "b", "p", "c")]
    made = made_of(*nodes, *pods, new="c")
    assert state(made) == "canary"
    alone = made_of(node("a"), node("b"), nodes[3], *pods, new="c")
    assert state(alone) == "halted"


@pytest.mark.parametrize(("lease", "outage"), [(False, True), (True, True), (True, False)])
def test_no_batch_begins_in_an_outage_while_the_first_new_node_was_not_watched(
    lease: bool, outage: bool
) -> None:
    """Its pods crashed, which nothing judges in an outage, and one more node followed it."""
    changed = {"ready": False, "ready_changed_at": ago(120)} if outage else {}
    others = [node(name, 9000, **changed) for name in ("p", "q", "r", "s")]
    objects: list[Node | Pod] = [node("a", 9000), full("a"), node("b", 9000), full("b")]
    objects += [node("c", 1200), on("c", "app", restarts=30)]
    known = remembered(canary_version=NEW) if lease else ()
    made = made_of(*objects, *others, new="c", fleet_states=known)
    assert (state(made), marked(made)) == ("canary" if outage else "halted", {})
    if outage:
        assert (
            made.updates[0].because
            == "the first new node cannot be judged now (outage or clock difference)"
        )


BEGUN: dict[str, Any] = {"canary_version": NEW}


def test_watch_begins_when_the_first_batch_has_gone_and_its_pods_have_come() -> None:
    """Its node had to wait for its turn, and the new one passed without a pod."""
    rest: list[Node | Pod] = [node("b"), full("b"), node("c", 900)]
    batch = node("a", 9000, mark=1, began=1200)
    waits = made_of(batch, full("a"), *rest, new="c", fleet_states=remembered(**BEGUN))
    assert state(waits) == "canary"
    assert saved(waits) == (NEW, None)
    half = made_of(batch, on("a"), on("c"), *rest, new="c", fleet_states=waits.fleet_states)
    assert saved(half) == (NEW, None), "other pods are still to come"
    gone = made_of(*rest, on("c"), new="c", fleet_states=half.fleet_states)
    assert state(gone) == "canary"
    assert gone.updates[0].because == "the first new node is watched for another 10m"
    assert saved(gone) == (NEW, 0)


def test_pods_of_the_first_batch_that_crash_halt_the_update_however_late_they_came() -> None:
    """A budget held them for 15 minutes, and the whole fleet got an image on which all crash."""
    objects: list[Node | Pod] = [node("a"), node("b"), full("a"), full("b"), node("c", 900)]
    late = replace(RESTARTED, scheduled_at=ago(180), started_at=ago(180))
    assert state(made_of(*objects, late, new="c", fleet_states=remembered(**BEGUN))) == "halted"
    assert state(made_of(*objects, late, new="c")) == "halted", "the Lease was lost"


def test_new_node_to_which_no_pod_came_proves_nothing() -> None:
    """The batch was given up, and the next one had as many nodes as if all were well."""
    objects: list[Node | Pod] = [node("a"), node("b"), full("a"), full("b")]
    made = made_of(*objects, node("c", 500), new="c", fleet_states=remembered(**BEGUN))
    assert state(made) == "canary"
    made = made_of(*objects, node("c", 700), new="c", fleet_states=remembered(**BEGUN))
    assert state(made) == "waiting", "else an update of empty nodes would never end"
    assert len(marked(made)) == 1


@pytest.mark.parametrize(("seconds", "batch"), [(599, 0), (600, 2)])
def test_short_pods_do_not_begin_the_watch_again(seconds: float, batch: int) -> None:
    """In a fleet of short jobs the canary never came to its end."""
    known = watched(seconds)
    objects: list[Node | Pod] = [node("a"), node("b"), full("a"), full("b"), node("c", 900)]
    job = on("c", started_at=ago(5), scheduled_at=ago(6))
    for pods in ((), (job,)):
        made = made_of(*objects, *pods, new="c", fleet_states=known)
        assert len(marked(made)) == batch
        assert saved(made) == (NEW, seconds)


@pytest.mark.parametrize("gone", [True, False])
def test_watch_begins_again_when_no_new_node_takes_pods(gone: bool) -> None:
    """Ten minutes of which it was silent for nine prove nothing."""
    known = watched(300)
    objects: list[Node | Pod] = [node("a"), full("a")]
    silent = [] if gone else [node("c", 900, ready=False, ready_changed_at=ago(60))]
    made = made_of(*objects, *silent, new="c", fleet_states=known)
    assert saved(made) == (NEW, None)
    made = made_of(*objects, node("c", 900), on("c"), new="c", fleet_states=made.fleet_states)
    assert saved(made) == (NEW, 0)


def test_version_that_was_proven_before_is_known_by_its_pods() -> None:
    """After an upgrade of this program a pod with three restarts in two days halted the update."""
    since: dict[str, Any] = {"scheduled_at": ago(DAY), "started_at": ago(DAY)}
    new = node("c", 2 * DAY, ready_changed_at=ago(100))
    batch: list[Node | Pod] = [node("a", mark=1), node("b"), full("a"), full("b"), new]
    made = made_of(*batch, replace(RESTARTED, **since), new="c")
    assert state(made) == "rolling"
    assert saved(made) == (NEW, DAY)


def test_halt_begins_the_watch_again() -> None:
    """A person let the update go on, and as many nodes as ever followed at once."""
    known = watched(300)
    objects: list[Node | Pod] = [node("a"), node("b"), full("a"), full("b"), node("c", 900)]
    halted = made_of(*objects, RESTARTED, new="c", fleet_states=known)
    assert state(halted) == "halted"
    assert saved(halted) == (NEW, None)
    states: dict[str, Any] = {"fleet_states": halted.fleet_states}
    goes_on = made_of(*objects, RESTARTED, new="c", resumed_updates=(FLEET.name,), **states)
    assert state(goes_on) == "canary"
    assert saved(goes_on) == (NEW, 0)


def test_nothing_is_noted_while_ec2_does_not_tell_the_version() -> None:
    """A failed call would have made a canary of each later batch."""
    known = remembered(**PROVEN)
    untold: dict[str, Any] = {"live": {"launch_template_version": "$Latest"}}
    made = made_of(node("a"), full("a"), node("c"), new="c", fleet_states=known, **untold)
    assert saved(made) == (NEW, 2 * DAY)


@pytest.mark.parametrize("changed", [{"server_time": ago(3600)}, {"server_time": ago(-3600)}])
def test_nothing_fails_or_is_proven_while_the_clocks_differ(changed: dict[str, Any]) -> None:
    """A machine that was suspended had its clock wrong for one plan, and the update was halted."""
    known = watched(30)
    objects: list[Node | Pod] = [node("a", 9000), full("a")]
    late = node("c", 3630, ready=False)
    for states in ((), known):
        made = made_of(*objects, late, RESTARTED, new="c", fleet_states=states, **changed)
        assert state(made) == "canary"
        assert made.fleet_states == states or saved(made)[1] == 30


def test_watch_that_a_clock_noted_ahead_of_its_time_begins_now() -> None:
    """The update would stand still until the clock has caught up."""
    ahead = watched(-DAY, seen=-DAY)
    made = made_of(node("a"), full("a"), node("c", 900), on("c"), new="c", fleet_states=ahead)
    assert saved(made) == (NEW, 0)


@pytest.mark.parametrize("cordoned", [False, True])
def test_cordoned_new_node_proves_nothing(cordoned: bool) -> None:
    """Whoever cordoned it has seen something."""
    new = node("c", 9000, unschedulable=cordoned)
    objects: list[Node | Pod] = [node("a"), node("b"), full("a"), full("b"), new, on("c")]
    assert len(marked(made_of(*objects, new="c"))) == (1 if cordoned else 2)


CILIUM = Taint(key="node.cilium.io/agent-not-ready", value="", effect="NoSchedule")
TOLERATING = (Toleration(key=CILIUM.key, operator="Exists"),)
EVERYTHING = (Toleration(operator="Exists"),)


@pytest.mark.parametrize(
    ("pods", "taints", "expected"),
    [
        ((on("c"),), (CILIUM,), "canary"),
        ((on("c", phase="Succeeded"),), (CILIUM,), "canary"),
        ((), (CILIUM,), "halted"),
        ((on("c", mirror=True),), (CILIUM,), "halted"),
        ((on("c", tolerations=EVERYTHING),), (CILIUM,), "halted"),
        ((on("c", tolerations=TOLERATING),), (CILIUM, NOT_READY), "halted"),
    ],
    ids=["runs", "has-ended", "none", "static", "tolerates-all", "tolerates-one-of-two"],
)
def test_start_up_taint_that_comes_back_is_no_failure(
    pods: tuple[Pod, ...], taints: tuple[Taint, ...], expected: str
) -> None:
    """Cilium taints nodes again while its agent restarts, and each upgrade halted the updates."""
    new = node("c", 1800, taints=taints)
    known = watched(300)
    made = made_of(
        node("a"), node("b"), full("a"), full("b"), new, *pods, new="c", fleet_states=known
    )
    assert state(made) == expected
    if expected == "halted":
        assert made.updates[0].because == f"node c has had the taint {CILIUM.key} for 30m"
