"""`--explain-node`: why a node is kept, used, held or leaves."""

import pytest

from reconciler.model.actions import UNNEEDED_SINCE
from reconciler.model.errors import UsageError
from reconciler.model.snapshot import Snapshot
from reconciler.planner.explain.answers import NodeExplanation
from reconciler.planner.explain.explain import explain
from reconciler.planner.planner import plan
from reconciler.planner.settings import PlannerSettings
from reconciler.planner.text import rfc3339
from tests.builders import ago, idle, make_fleet_settings, make_node, make_pod, make_settings
from tests.builders import make_snapshot as snapshot_of

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


def test_node_to_which_demand_is_promised_is_used() -> None:
    """An empty node is not idle when a pending pod is about to land there."""
    found = explained(snapshot_of(make_node("n0", FLEET, annotations=LONG_IDLE), make_pod()))
    assert (found.verdict, found.code) == ("used", "promised")


def test_foreign_node_is_never_touched() -> None:
    """Nodes of other tools are none of ours, and the answer says so."""
    assert explained(snapshot_of(make_node("n0"))).verdict == "foreign"


def test_unknown_node_is_a_usage_error() -> None:
    """A slip of the hand gets a hint."""
    with pytest.raises(UsageError, match="did you mean n0"):
        explained(snapshot_of(make_node("n0", FLEET)), node="n00")
