"""`reconciler run` beside another replica: who waits, who ends, who never takes the Lease."""

from collections.abc import Callable

import pytest

from tests.sandbox.capacity.world import DEADLINE_SECONDS, Program, World

pytestmark = pytest.mark.sandbox


def test_second_program_stands_by_and_single_cycle_is_refused(
    program: Callable[..., Program], world: World
) -> None:
    """Someone starts it on a laptop while it runs in the cluster."""
    first = program()
    first.until_event("leading_began", lambda _: True)
    second = program()
    second.until_ready()
    assert second.get("/readyz") == (200, "standby\n")
    assert first.get("/readyz") == (200, "leader\n")
    assert "fleet_reconciler_leader 1.0" in first.get("/metrics")[1]
    assert "fleet_reconciler_leader 0.0" in second.get("/metrics")[1]
    world.add_pods(["one"], cpu="1500m")
    world.until_pods(lambda phases: phases["one"] == "Running")
    assert second.events("action_applied") == []
    once = program("--once")
    assert once.process.wait(DEADLINE_SECONDS) == 1
    assert "Lease fleet-reconciler: is held by" in once.log_text
    trial = program("--once", "--dry-run")
    assert trial.process.wait(DEADLINE_SECONDS) == 0
    world.remove_pods()
    world.until_idle()
    assert first.end()[0] == 0
    second.until_event("leading_began", lambda _: True)
    assert second.end()[0] == 0


def test_program_without_election_acts_and_leaves_the_lease_alone(
    program: Callable[..., Program], world: World
) -> None:
    """Where nobody may write Leases it must still be of use."""
    alone = program("--no-leader-elect")
    alone.until_ready()
    assert alone.get("/readyz") == (200, "leader\n")
    world.add_pods(["one"], cpu="1500m")
    world.until_pods(lambda phases: phases["one"] == "Running")
    world.remove_pods()
    world.until_idle()
    assert alone.events("leading_began") == []
    assert alone.end()[0] == 0
