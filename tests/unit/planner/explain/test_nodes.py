"""`--explain-node`: why a node is kept, used, held or leaves."""

from dataclasses import replace
from datetime import time
from typing import Any

import pytest

from reconciler.model.actions import DO_NOT_DISRUPT, DRAINING_TAINT, UNNEEDED_SINCE
from reconciler.model.cluster import Node, Owner, Pod, PodDisruptionBudget, Taint
from reconciler.model.errors import UsageError
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import PodKey
from reconciler.model.snapshot import Snapshot
from reconciler.model.text import rfc3339
from reconciler.planner.disruption_settings import MaintenanceWindow, RollingUpdate
from reconciler.planner.explain.answers import NodeExplanation
from reconciler.planner.explain.explain import explain
from reconciler.planner.planner import plan
from reconciler.planner.settings import Headroom, PlannerSettings
from tests.builders import (
    ago,
    idle,
    make_fleet_settings,
    make_node,
    make_pod,
    make_settings,
    selecting,
)
from tests.builders import make_snapshot as snapshot_of
from tests.unit.planner.disruption.updated_fleet import made_of
from tests.unit.planner.disruption.updated_fleet import node as drifted
from tests.unit.planner.placed import drained

FLEET = make_fleet_settings("small", scale_in=idle(600))
LONG_IDLE = {UNNEEDED_SINCE: rfc3339(ago(3000))}


def explained(
    snapshot: Snapshot, settings: PlannerSettings | None = None, node: str = "n0"
) -> NodeExplanation:
    """The explanation of one node."""
    chosen = settings or make_settings(FLEET)
    return explain(snapshot, chosen, plan(snapshot, chosen), nodes=[node]).nodes[0]


def test_node_in_use_names_the_pods_that_keep_it() -> None:
    """The question why a node is still here is answered by its pods, daemons left out."""
    pods = [make_pod("web", node="n0", cpu=3), make_pod("agent", node="n0", owner="DaemonSet")]
    found = explained(snapshot_of(make_node("n0", FLEET), *pods))
    assert [str(pod) for pod in found.pods] == ["ns/web"]
    assert found.verdict in {"used", "kept"}


@pytest.mark.parametrize(
    ("node", "owner", "told"),
    [
        ({DO_NOT_DISRUPT: "true"}, "ReplicaSet", "(protected): it is annotated"),
        ({}, "Job", "(started-job): ns/web"),
        ({}, "ReplicaSet", ""),
    ],
)
def test_used_node_says_what_would_keep_it_besides(
    node: dict[str, str], owner: str, told: str
) -> None:
    """Its pods move in time; what keeps it then is worth knowing before."""
    pod = make_pod("web", node="n0", cpu=3, owner=owner)
    found = explained(snapshot_of(make_node("n0", FLEET, annotations=FrozenMap(node)), pod))
    assert found.code == "has-pods"
    assert ("could not be emptied" in found.because) == bool(told)
    assert told in found.because


def test_node_with_a_running_timer_says_how_long_it_waits() -> None:
    """An idle node within its grace period looks like a mistake until one knows the timer."""
    node = make_node("n0", FLEET, annotations={UNNEEDED_SINCE: rfc3339(ago(60))})
    found = explained(snapshot_of(node))
    assert (found.verdict, found.code) == ("kept", "idle-time")
    assert "9m to go" in found.because


def test_idle_node_leaves_with_its_actions() -> None:
    """The answer shows what will be done to the node, not only that it goes."""
    found = explained(snapshot_of(make_node("n0", FLEET, annotations=LONG_IDLE)))
    assert (found.verdict, found.code) == ("leaves", "scale-in")
    assert len(found.actions) == 1


def test_node_at_the_minimum_is_kept_for_it() -> None:
    """The commonest reason of an idle node that stays."""
    fleet = make_fleet_settings("small", min_capacity=1, scale_in=idle(600))
    node = make_node("n0", fleet, annotations=LONG_IDLE)
    assert explained(snapshot_of(node), make_settings(fleet)).code == "min-capacity"


def test_node_held_by_the_safety_stop_says_what_would_release_it() -> None:
    """A held plan without its reason looks like a hung program."""
    nodes = [make_node(f"n{i}", FLEET, annotations=LONG_IDLE) for i in range(8)]
    found = explained(snapshot_of(*nodes))
    assert (found.verdict, found.code) == ("held", "safety-stop")
    assert "second full list" in found.because


def test_little_used_node_says_that_its_free_room_is_headroom() -> None:
    """It would seem that its one pod, which fits elsewhere, keeps it."""
    nodes = [make_node(name, FLEET, annotations=FrozenMap(LONG_IDLE)) for name in ("n0", "n1")]
    pods = [make_pod("web", node="n0", cpu=1), make_pod("other", node="n1", cpu="2500m")]
    kept_free = Headroom(sector="primary", cpu_milli=2000)
    found = explained(snapshot_of(*nodes, *pods), make_settings(FLEET, headroom=(kept_free,)))
    assert (found.verdict, found.code) == ("used", "has-pods")
    assert "ns/web; its free room is headroom of sector primary" in found.because


def test_free_room_of_a_found_group_is_headroom_of_no_named_sector() -> None:
    """A config without sectors has one without a name."""
    group = make_fleet_settings(sector="", provider="asg")
    settings = make_settings(group, headroom=(Headroom(sector="", cpu_milli=2000),))
    node = make_node("n0", group, annotations=FrozenMap(LONG_IDLE))
    found = explained(snapshot_of(node, make_pod("web", node="n0", cpu=1)), settings)
    assert found.because.endswith("; its free room is headroom")


def test_node_with_room_reserved_for_demand_is_used() -> None:
    """An empty node is not idle when a pending pod is about to land there."""
    found = explained(snapshot_of(make_node("n0", FLEET, annotations=LONG_IDLE), make_pod()))
    assert (found.verdict, found.code) == ("used", "reserved")


def test_foreign_node_is_never_touched() -> None:
    """Nodes of other tools are none of ours, and the answer says so."""
    assert explained(snapshot_of(make_node("n0"))).verdict == "foreign"


WEB = make_pod("web", node="n0", cpu="100m", memory="100Mi")
BUDGET = PodDisruptionBudget(namespace="ns", name="b", selector=selecting(), disruptions_allowed=0)


@pytest.mark.parametrize(
    ("pod", "cluster", "code", "because"),
    [
        (
            replace(WEB, annotations=FrozenMap({DO_NOT_DISRUPT: "true"})),
            {},
            "do-not-disrupt",
            "ns/web: it is annotated fleet-reconciler.io/do-not-disrupt=true",
        ),
        (
            replace(WEB, owner=None),
            {},
            "no-controller",
            "ns/web: bare pod: nothing would recreate it (`move_bare_pods` ",
        ),
        (
            replace(WEB, owner=Owner(kind="Job", name="j")),
            {},
            "started-job",
            "ns/web: it belongs to a Job that has started",
        ),
        (
            replace(WEB, spec=replace(WEB.spec, local_storage=True)),
            {},
            "local-storage",
            "ns/web: it keeps data on the node in an emptyDir or hostPath (`move_local_storage`",
        ),
        (
            replace(WEB, key=PodKey(namespace="kube-system", name="dns")),
            {},
            "kube-system",
            "kube-system/dns: it is a kube-system pod without a disruption budget (one, or",
        ),
        (
            WEB,
            {"budgets": (BUDGET, replace(BUDGET, name="c"))},
            "two-budgets",
            "ns/web: 2 disruption budgets cover it",
        ),
        (
            replace(WEB, spec=replace(WEB.spec, termination_grace_seconds=600)),
            {},
            "long-grace",
            "ns/web: it may take 600 s to end, max_graceful_termination is 120 s",
        ),
        (replace(WEB, unreadable=True), {}, "unreadable", "ns/web: it cannot be read"),
        (
            WEB,
            {"budgets": (replace(BUDGET, unreadable=True, selector=None),)},
            "unreadable-budget",
            (
                "ns/web: a disruption budget of its namespace cannot be read, or those that may "
                "cover it have too many expressions"
            ),
        ),
        (WEB, {"budgets": (BUDGET,)}, "budget", ""),
        (WEB, {}, "no-destination", "its pods fit on no other node"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.islower() else "",
)
def test_under_used_node_says_which_rule_keeps_it(
    pod: Pod, cluster: dict[str, Any], code: str, because: str
) -> None:
    """The owner of the pod that keeps a node must hear of it, and what would let it go."""
    others = [make_node("n1", FLEET)] if code != "no-destination" else []
    blocker = make_pod("full", node="n1", cpu=3) if others else None
    rest: list[Node | Pod] = [*others, *([blocker] if blocker else [])]
    node = make_node("n0", FLEET, annotations=LONG_IDLE)
    found = explained(snapshot_of(node, pod, *rest, **cluster))
    assert (found.verdict, found.code) == ("kept", code)
    assert found.because.startswith(because)


@pytest.mark.parametrize(
    ("changed", "fleet", "code", "because"),
    [
        (
            {"annotations": {**LONG_IDLE, DO_NOT_DISRUPT: "true"}},
            {},
            "protected",
            "it is annotated fleet-reconciler.io/do-not-disrupt=true",
        ),
        ({"ready": False}, {}, "not-ready", "it is not Ready"),
        ({"instance_id": None}, {}, "unreadable", "it cannot be read or has no instance"),
        (
            {},
            {"scale_in": idle(600, type_spares=1, type_idle_threshold_seconds=10_000)},
            "type-spares",
            "kept as a spare of its instance type",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and value.islower() else "",
)
def test_empty_node_says_which_rule_keeps_it(
    changed: dict[str, Any], fleet: dict[str, Any], code: str, because: str
) -> None:
    """An idle node costs money: whoever asks must learn which setting keeps it."""
    of = make_fleet_settings("small", **{"scale_in": idle(600), **fleet})
    annotations = FrozenMap(changed.pop("annotations", LONG_IDLE))
    node = make_node("n0", of, annotations=annotations, **changed)
    found = explained(snapshot_of(node), make_settings(of))
    assert (found.verdict, found.code, found.because) == ("kept", code, because)


def test_unknown_node_is_a_usage_error() -> None:
    """A slip of the hand gets a hint."""
    with pytest.raises(UsageError, match="did you mean n0"):
        explained(snapshot_of(make_node("n0", FLEET)), node="n00")


def test_draining_taint_of_a_person_is_named_with_the_command_that_takes_it_off() -> None:
    """The node stays for ever, and `it is being emptied` sends the reader to wait for that."""
    by_hand = Taint(key=DRAINING_TAINT, value="maintenance", effect="NoSchedule")
    found = explained(snapshot_of(make_node("n0", FLEET, taints=(by_hand,))))
    assert found.verdict == "kept"
    assert f"kubectl taint node n0 {DRAINING_TAINT}-" in found.because
    web = make_pod("web", node="n0", cpu=3)
    used = explained(snapshot_of(make_node("n0", FLEET, taints=(by_hand,)), web))
    assert used.verdict == "used"
    assert used.because.startswith("1 pod on it: ns/web; somebody else set its draining taint; ")


def test_node_that_the_plan_empties_is_not_among_those_that_stay() -> None:
    """The plan's JSON said of it that its rolling update had not reached it yet."""
    closed = RollingUpdate(windows=(MaintenanceWindow(starts=time(1), ends=time(2)),))
    nodes = [drifted("a", annotations=LONG_IDLE), drifted("b")]
    pods = [make_pod("web", node="a", cpu="500m"), make_pod("db", node="b", cpu="2500m")]
    made = made_of(*nodes, *pods, rules=closed)
    assert drained(made) == ["a"]
    assert [(each.node, each.code) for each in made.kept] == [("b", "rolling-update")]
