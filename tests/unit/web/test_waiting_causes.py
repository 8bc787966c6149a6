"""What the first line says of pods that wait: their own fleets and limits, and the cure."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from reconciler.adapters.memory import ManualClock
from reconciler.loops.reconcile_loop import CycleReport
from reconciler.loops.reporters.refusal_events import refusal_events
from reconciler.loops.workloads import pending_by_workload
from reconciler.model.cluster import Pod
from reconciler.model.fleet import FleetEvent
from reconciler.model.frozen import FrozenMap
from reconciler.model.saved_state import SavedFleetState
from reconciler.model.snapshot import Snapshot
from reconciler.planner.planner import plan
from reconciler.planner.settings import FleetSettings, PlannerSettings, RaiseLimits
from reconciler.web.board import StatusBoard
from reconciler.web.causes.cause import Cause
from reconciler.web.next_steps import next_steps
from reconciler.web.overview import because, remedy
from reconciler.web.status import unplaceable_by_bounded_code
from reconciler.web.verdict import verdict_of
from tests.builders import (
    AWAY,
    HOME,
    ago,
    capacity_error,
    make_cloud,
    make_fleet,
    make_fleet_settings,
    make_node,
    make_pod,
    make_settings,
    make_snapshot,
)

SMALL = make_fleet_settings(price="0.25")
STEADY = make_fleet_settings("steady", spot=False, price="0.50")
BATCH = make_fleet_settings(sector="batch")
GROUP = make_fleet_settings(provider="asg", auto_scaling_group="workers")
ERRORS: dict[str, Any] = {"launch_errors": (capacity_error(),)}
SUSPENDED = "its process Launch is suspended"
BROKEN: dict[str, Any] = {
    "launch_errors": (
        FleetEvent(at=ago(60), code="InvalidAMIID.NotFound", message="no image 'ami-0abc1234'"),
    )
}
AT_QUOTA: dict[str, Any] = {"launch_errors": (capacity_error(60, "VcpuLimitExceeded"),)}
UNITS = "its target counts units of WeightedCapacity, not nodes"


def board_of(snapshot: Snapshot, settings: PlannerSettings) -> StatusBoard:
    """The board after one cycle."""
    made = plan(snapshot, settings)
    board = StatusBoard(ManualClock(), "1", lambda: True)
    board.plan_made(snapshot, made)
    board.cycle_ended(CycleReport(number=1, snapshot=snapshot, plan=made, acted=True))
    return board


def causes(snapshot: Snapshot, settings: PlannerSettings) -> tuple[Cause, ...]:
    """All causes, the first line's first."""
    return verdict_of(board_of(snapshot, settings)).causes


def only(snapshot: Snapshot, settings: PlannerSettings) -> Cause:
    """The only cause."""
    (cause,) = causes(snapshot, settings)
    return cause


def cooling(**changed: Any) -> SavedFleetState:
    """A cool-off that goes on for four minutes."""
    return SavedFleetState(fleet=SMALL.name, region=HOME, unavailable_until=ago(-240), **changed)


def waiting(fleet: FleetSettings = SMALL, *pods: Pod, **live: Any) -> Snapshot:
    """Pods that only this fleet could run, and how EC2 shows it."""
    saved = live.pop("fleet_states", ())
    cloud = make_cloud(make_fleet(fleet, live.pop("target", 0), **live))
    return make_snapshot(*(pods or (make_pod(),)), cloud=cloud, fleet_states=saved)


def test_reason_of_pods_of_a_missing_fleet_says_to_apply_it() -> None:
    """There is no cool-off to wait for: nobody has made the fleet."""
    snapshot = make_snapshot(make_pod(), cloud=make_cloud())
    (pending,) = pending_by_workload(snapshot, plan(snapshot, make_settings(SMALL)))
    assert because(pending) == "the fleets that could run it do not exist in EC2"
    assert remedy(pending, {}) == "apply the Terraform root"


def full_at_home() -> tuple[Snapshot, PlannerSettings]:
    """A fleet is at its maximum in the preferred region, and another sector's has no capacity."""
    both = replace(SMALL, max_capacity=1, regions=(HOME, AWAY))
    node = make_node("n", both, unschedulable=True)
    lives = make_fleet(both, 1), make_fleet(both, region=AWAY), make_fleet(BATCH, **ERRORS)
    snapshot = make_snapshot(node, make_pod(), cloud=make_cloud(*lives))
    return snapshot, make_settings(both, BATCH, regions=(HOME, AWAY))


def test_fleet_that_no_waiting_pod_could_use_is_not_named() -> None:
    """Somebody would look for capacity of a fleet that nobody asks for."""
    snapshot = make_snapshot(make_pod(), cloud=make_cloud(make_fleet(BATCH, **ERRORS)))
    cause = only(snapshot, make_settings(SMALL, BATCH))
    assert cause.kind == "fleet-missing"
    assert cause.detail == "EC2 does not have primary-small in us-west-2"


def test_pods_that_stay_with_their_full_region_do_not_wait_for_capacity() -> None:
    """Their limit is what keeps them, and a fleet of another sector was named before it."""
    cause = only(*full_at_home())
    assert (cause.headline, cause.kind) == ("Limit reached for 1 pod", "budget-too-tight")


def test_later_region_that_only_waits_is_neither_counted_nor_called_short() -> None:
    """Nothing is unavailable: its demand stays at home, where a limit is reached."""
    snapshot, settings = full_at_home()
    made = plan(snapshot, settings)
    codes = {(r.region, r.code) for r in made.unplaceable[0].reasons}
    assert codes == {(HOME, "max-capacity"), (AWAY, "fleet-unavailable")}
    assert unplaceable_by_bounded_code(made) == {"max-capacity": 1}
    (pending,) = pending_by_workload(snapshot, made)
    assert "its demand stays with the fleets of the preferred region" in because(pending)
    assert "EC2 cannot" not in because(pending)
    assert remedy(pending, {}) == "raise max_capacity of one of these fleets"


@pytest.mark.parametrize(
    ("live", "kind", "headline", "cure"),
    [
        (ERRORS, "no-capacity", "No capacity for 1 pod", "add instance types"),
        ({"activity_status": "error"}, "no-capacity", "No capacity for 1 pod", "add instance"),
        (AT_QUOTA, "quota-reached", "The account's quota has no room for 1 pod", "raise the quota"),
        (BROKEN, "launch-fails", "Launches for 1 pod fail", "fix what AWS names"),
        ({"launches_halted": UNITS}, "fleet-unavailable", "No fleet can run 1 pod", "the weights"),
        ({"launches_halted": SUSPENDED}, "fleet-unavailable", "No fleet", "resume the process"),
        (
            {"fleet_states": (cooling(failure="denied", reason="AccessDenied: no"),)},
            "fleet-unavailable",
            "EC2 refuses nodes for 1 pod",
            "compare the role's policy",
        ),
        (
            {"fleet_states": (cooling(stuck_in_a_row=3, failures=1),)},
            "fleet-unavailable",
            "Instances for 1 pod become no usable nodes",
            "look at the console output",
        ),
    ],
    ids=[
        "capacity",
        "activity",
        "quota",
        "launch-fails",
        "units",
        "suspended",
        "denied",
        "never-joined",
    ],
)
def test_each_reason_of_a_closed_fleet_has_its_own_headline_and_cure(
    live: dict[str, Any], kind: str, headline: str, cure: str
) -> None:
    """More instance types help against none of them but a lack of capacity."""
    snapshot, settings = waiting(**live), make_settings(SMALL)
    cause = only(snapshot, settings)
    assert (cause.kind, cause.level) == (kind, "limited")
    assert cause.headline.startswith(headline)
    assert cure in cause.remedy
    assert "spot_fallback" not in cause.remedy
    (event,) = refusal_events(snapshot, plan(snapshot, settings), 1)
    (pending,) = pending_by_workload(snapshot, plan(snapshot, settings))
    for text in (event.message, remedy(pending, {})):
        assert "cool-off to end" not in text
        assert "spot_fallback" not in text
    assert ("EC2 cannot deliver" in because(pending)) == (kind == "no-capacity")


def test_broken_template_is_reported_in_the_words_of_aws() -> None:
    """Whoever read "No capacity" added instance types, and every launch failed as before."""
    cause = only(waiting(**BROKEN), make_settings(SMALL))
    assert "primary-small: InvalidAMIID.NotFound: no image 'ami-0abc1234'; cooling" in cause.detail


def test_fleet_in_error_says_what_its_last_launches_failed_for() -> None:
    """Between two cool-offs of the same broken template the advice was to add instance types."""
    saved = SavedFleetState(
        fleet=SMALL.name,
        region=HOME,
        failures=1,
        failure="launch-fails",
        reason="iamFleetRoleInvalid",
        last_error_at=ago(600),
        unavailable_until=ago(300),
    )
    cause = only(waiting(activity_status="error", fleet_states=(saved,)), make_settings(SMALL))
    assert cause.kind == "launch-fails"
    assert cause.detail.endswith("activity status as error: iamFleetRoleInvalid")


def test_fallback_is_only_advised_where_an_on_demand_fleet_is_kept_closed() -> None:
    """On fleets that are on demand already, or without any that are, it changes nothing."""
    cloud = make_cloud(make_fleet(SMALL, **ERRORS), make_fleet(STEADY))
    cause = only(make_snapshot(make_pod(), cloud=cloud), make_settings(SMALL, STEADY))
    assert (
        cause.remedy
        == "wait, or add instance types, sizes or zones, or set spot_fallback: on-demand"
    )


def test_cool_off_for_instances_that_never_joined_says_so() -> None:
    """The step read "cool-off after 1 failure: " and nothing."""
    stuck = cooling(stuck_in_a_row=3, failures=1)
    board = board_of(waiting(fleet_states=(stuck,)), make_settings(SMALL))
    (step,) = (
        next_step
        for next_step in next_steps(board.view)
        if "asked for nodes again" in next_step.what
    )
    assert step.why == "cool-off after 1 failure: 3 instances in a row never became usable nodes"


@pytest.mark.parametrize(
    ("most", "size", "said", "cure"),
    [
        (3, 0, "at its group's maximum size of 0", "raise the maximum size of the Auto Scaling"),
        (0, 3, "at its max_capacity of 0", "raise max_capacity,"),
        (0, 0, "at its max_capacity and its group's maximum size of 0", "raise max_capacity and"),
    ],
)
def test_limit_that_is_named_is_the_one_that_holds(
    most: int, size: int, said: str, cure: str
) -> None:
    """Whoever raised max_capacity of a full group would find nothing changed."""
    fleet = replace(GROUP, max_capacity=most)
    live = replace(make_fleet(fleet, id="workers"), name="workers", max_size=size)
    snapshot = make_snapshot(make_pod(), cloud=make_cloud(live))
    settings = make_settings(fleet)
    cause = only(snapshot, settings)
    assert (cause.headline, cause.kind) == ("Limit reached for 1 pod", "budget-too-tight")
    assert cause.detail.endswith(said)
    assert cause.remedy.startswith(cure)
    made = plan(snapshot, settings)
    (event,) = refusal_events(snapshot, made, 1)
    assert event.message.endswith(f"What usually helps: {remedy_of(snapshot, settings)}")
    assert ("maximum size" in event.message) == (size == 0)


def remedy_of(snapshot: Snapshot, settings: PlannerSettings) -> str:
    """The page's remedy before one is tested."""
    (pending,) = pending_by_workload(snapshot, plan(snapshot, settings))
    return remedy(pending, {})


def test_fleet_that_is_replaced_is_not_at_a_limit() -> None:
    """No value of max_capacity lets it have a node before its replacement is there."""
    settings = make_settings(
        replace(SMALL, max_capacity=200), allow_destroy=frozenset({SMALL.name})
    )
    cause = only(waiting(tags=FrozenMap({"Spot": "false"})), settings)
    assert (cause.kind, cause.headline) == ("fleet-unavailable", "No fleet can run 1 pod")
    assert "is to be replaced by one of another capacity type" in cause.detail
    assert "max_capacity" not in cause.detail + cause.remedy


def test_limit_of_raises_below_a_node_is_nothing_to_wait_for() -> None:
    """The next plan may spend as little as this one."""
    small = RaiseLimits(hourly_usd_per_cycle=Decimal("0.1"))
    cause = only(waiting(), make_settings(SMALL, raise_limits=small))
    assert cause.detail.endswith("a node at 0.25 USD per hour is beyond that in every plan")
    assert cause.remedy == "raise raise_limits: no plan buys a node before"
    enough = RaiseLimits(nodes_per_cycle=1)
    pods = [make_pod(name, cpu="3") for name in ("a", "b")]
    cause = only(waiting(SMALL, *pods), make_settings(SMALL, raise_limits=enough))
    assert cause.remedy == "raise raise_limits, or wait: later plans go on"


def test_fleet_whose_instances_become_no_usable_nodes_is_reported_although_no_pod_waits() -> None:
    """The verdict was `OK: No pod waits` while each node of an image stayed not Ready."""
    stuck = cooling(stuck_in_a_row=3, stuck_because="node a was never Ready", failures=1)
    snapshot = make_snapshot(cloud=make_cloud(make_fleet(SMALL)), fleet_states=(stuck,))
    cause = only(snapshot, make_settings(SMALL))
    assert (cause.kind, cause.level) == ("fleet-unavailable", "limited")
    assert cause.headline == "Instances of 1 fleet become no usable nodes"
    assert "the last: node a was never Ready" in cause.detail
    assert "kubectl describe node" in cause.remedy
