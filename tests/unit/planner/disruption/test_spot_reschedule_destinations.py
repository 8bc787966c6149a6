"""Spot nodes that are about to go take no pods of on-demand nodes."""

from dataclasses import replace

from reconciler.model.actions import INTERRUPTION
from reconciler.model.frozen import FrozenMap
from reconciler.model.text import rfc3339
from reconciler.planner.disruption_settings import DisruptionBudget, DisruptionReason
from reconciler.planner.settings import PlannerSettings
from tests.builders import ago, make_node
from tests.unit.planner.disruption.scale_in.scene import make_scene_fleet, on, planned, unneeded
from tests.unit.planner.disruption.spot_nodes import (
    ON_DEMAND,
    SPOT,
    begun,
    made_of,
    nodes,
    settings,
)

RECOMMENDED = {INTERRUPTION: f"rebalance-recommendation/{rfc3339(ago(60))}"}


def kept_by_budget(reason: DisruptionReason, found: PlannerSettings) -> PlannerSettings:
    """No node may be disrupted for the reason now, as in office hours."""
    budget = DisruptionBudget(nodes=0, reasons=frozenset({reason}))
    return replace(found, disruption_budgets=(budget,))


def test_idle_spot_node_that_ec2_recommends_to_leave_takes_no_pods() -> None:
    """Pods would move from a safe node to one that EC2 is about to take."""
    s = unneeded("s", SPOT, annotations=RECOMMENDED)
    made = planned(kept_by_budget("rebalance", settings()), *nodes("a", ""), s, on("a"))
    assert begun(made) == []


def test_idle_spot_node_that_has_expired_takes_no_pods() -> None:
    """They would move once more when the budget lets it go."""
    spot = replace(SPOT, expire_after_seconds=3600.0)
    s = unneeded("s", spot, created_at=ago(7200))
    found = kept_by_budget("expired", settings(fleets=(ON_DEMAND, spot)))
    assert begun(planned(found, *nodes("a", ""), s, on("a"))) == []


def test_idle_spot_node_of_a_fleet_that_is_removed_takes_no_pods() -> None:
    """The fleet left the config: its nodes go as soon as they were idle for ten minutes."""
    spot = replace(SPOT, departing=True)
    s = make_node("s", spot, created_at=ago(7200))
    found = settings(fleets=(ON_DEMAND, spot))
    assert begun(planned(found, *nodes("a", ""), s, on("a"))) == []


def test_spot_node_of_others_that_ec2_recommends_to_leave_takes_no_pods() -> None:
    """The node watch runs there too, and has written down what EC2 recommends."""
    other = make_node("s", labels={"lifecycle": "Ec2Spot"}, annotations=FrozenMap(RECOMMENDED))
    assert begun(planned(settings(), *nodes("a", ""), other, on("a"), on("s"))) == []


def test_last_drain_in_the_future_delays_by_no_more_than_the_pause() -> None:
    """A leader whose clock was ahead wrote it (here: by 90 days); it stops the rescheduler."""
    made = made_of(*nodes(), on("a"), on("s"), last_drain_at=ago(-90 * 86400))
    assert begun(made) == ["a"]


def test_on_demand_node_that_waits_to_be_replaced_still_gets_pods_by_kube_scheduler() -> None:
    """Nothing keeps kube-scheduler off it: pods would move from one on-demand node to another."""
    bare = replace(ON_DEMAND, taints=())
    expiring = make_scene_fleet(
        name="old", spot=False, utilization_threshold=0.0, expire_after_seconds=3600.0
    )
    old = make_node("b", expiring, created_at=ago(7200))
    a, s = make_node("a", bare), make_node("s", SPOT)
    usual = settings(fleets=(bare, replace(expiring, expire_after_seconds=None), SPOT))
    pods = on("a"), on("b"), on("s", cpu="2")
    assert begun(planned(usual, a, old, s, *pods)) == []  # not-preferred: it would land on b
    found = kept_by_budget("expired", settings(fleets=(bare, expiring, SPOT)))
    made = planned(found, a, old, s, *pods)
    assert begun(made) == []
