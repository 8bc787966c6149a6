"""What an on-call engineer meets at night: page, terminal and JSON say it in their first line."""

import html
import io
import json
import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from rich.console import Console

from reconciler.cli.status_view import view_of
from reconciler.model.errors import (
    ConfigError,
    Forbidden,
    ObservationError,
    Problem,
    Throttled,
    Unavailable,
)
from reconciler.model.ids import Region
from reconciler.model.plan import Plan
from reconciler.model.snapshot import CloudState, ClusterState, Snapshot
from reconciler.web.board import LeadershipView
from tests.builders import HOME
from tests.unit.web.scene import COST, Scene, fleet, raised, unplaced

DENIED = replace(
    raised("failed"), detail="fleet fleet-1: UnauthorizedOperation: no", error="Forbidden"
)
NONE_LEFT = replace(
    raised("failed"), detail="fleet fleet-1: VcpuLimitExceeded", error="InsufficientCapacity"
)
COOLING = "InsufficientInstanceCapacity; cooling off until 12:05:00"


def ec2_denied(scene: Scene) -> None:
    """A raise that IAM does not allow."""
    scene.cycle(DENIED, fleets=(fleet(),))


def ec2_denied_from_the_start(scene: Scene) -> None:
    """A role that may not even look."""
    scene.cycle(error=Forbidden("describe_fleets", "UnauthorizedOperation: no"))


def ec2_silent(scene: Scene) -> None:
    """No answer from the only region."""
    scene.cycle(error=Unavailable("describe_fleets", "ReadTimeoutError: no answer"))


def ec2_throttles(scene: Scene) -> None:
    """Answers, but no content."""
    scene.cycle(error=Throttled("describe_fleets", "RequestLimitExceeded"))


def region_silent(scene: Scene) -> None:
    """One of two regions is away."""
    cloud = CloudState(regions=frozenset({HOME}), silent=frozenset({Region("us-east-1")}))
    at = scene.clock.now()
    plan = Plan(at=at, cluster="analytics", home_region=HOME, cost=COST)
    scene.board.plan_made(Snapshot(at=at, cluster=ClusterState(), cloud=cloud), plan)


def api_server_down(scene: Scene) -> None:
    """Caches that are too old to decide from."""
    scene.cycle()
    scene.cycle(error=ObservationError("https://10.0.0.1", "any kind not heard of for 61 s"))


def config_refused(scene: Scene) -> None:
    """A typo was pushed."""
    scene.cycle()
    problem = Problem(line=3, column=5, path="regions", code="config/type", message="5 is no list")
    scene.board.config_refused(ConfigError("sectors.yaml", (problem,)))


def lease_lost(scene: Scene) -> None:
    """It led, and another replica has the Lease now."""
    scene.leads = LeadershipView(enabled=True, leads=True, holder="pod-1")
    scene.cycle()
    scene.ask("/api/status")
    scene.leads = LeadershipView(enabled=True, leads=False, holder="pod-2")


def not_the_leader(scene: Scene) -> None:
    """A healthy standby."""
    scene.leads = LeadershipView(enabled=True, leads=False, holder="pod-2")
    scene.cycle(unplaceable=(unplaced("a", "max-cost"),))


def no_capacity(scene: Scene) -> None:
    """The only fleet cools off and a pod waits for it."""
    scene.cycle(
        fleets=(fleet(unavailable=COOLING),), unplaceable=(unplaced("a", "fleet-unavailable"),)
    )


def ec2_refuses_for_want_of_capacity(scene: Scene) -> None:
    """A limit of vCPUs."""
    scene.cycle(NONE_LEFT, fleets=(fleet(),))


def budget_too_tight(scene: Scene) -> None:
    """Money is out."""
    scene.cycle(unplaceable=(unplaced("a", "max-cost", detail="would exceed max_hourly_usd"),))


LEAD = r'<p class="lead"><b>.*?</b>(.*?)</p>\s*<p class="cause">(.*?)</p>'

STATES: tuple[tuple[Callable[[Scene], None], str, str, str], ...] = (
    (ec2_denied, "degraded", "EC2 denies ModifyFleet", "UnauthorizedOperation: no"),
    (ec2_denied_from_the_start, "failing", "EC2 denies DescribeFleets", "UnauthorizedOperation"),
    (ec2_silent, "failing", "EC2 does not answer", "ReadTimeoutError"),
    (ec2_throttles, "failing", "EC2 does not answer", "RequestLimitExceeded"),
    (region_silent, "degraded", "EC2 does not answer in us-east-1", "asked for nothing"),
    (api_server_down, "failing", "API server unreachable", "not heard of for 61 s"),
    (config_refused, "degraded", "Config refused", "3:5: config/type: 5 is no list"),
    (lease_lost, "degraded", "Lease lost", "current leader: pod-2"),
    (not_the_leader, "standby", "Not the leader", "current leader: pod-2"),
    (no_capacity, "limited", "No capacity for 1 pod", f"primary-small: {COOLING}"),
    (ec2_refuses_for_want_of_capacity, "degraded", "EC2 has no capacity", "VcpuLimitExceeded"),
    (budget_too_tight, "limited", "Budget too tight for 1 pod", "would exceed max_hourly_usd"),
)


@pytest.mark.parametrize(
    ("state", "level", "headline", "cause"), STATES, ids=[state[0].__name__ for state in STATES]
)
def test_bad_state_is_the_first_line_of_page_terminal_and_json(
    state: Callable[[Scene], None], level: str, headline: str, cause: str
) -> None:
    """A page that looks healthy while nothing works costs a night."""
    with Scene() as scene:
        state(scene)
        status = json.loads(scene.ask("/api/status")[2])
        assert status["verdict"]["level"] == level
        assert status["verdict"]["text"].startswith(f"{headline}: ")
        assert cause in status["verdict"]["text"]
        page = html.unescape(scene.ask("/")[2])
        (lead,) = re.findall(
            r'<p class="lead"><b>.*?</b>(.*?)</p>\s*<p class="cause">(.*?)</p>', page
        )
        assert lead[0] == headline
        assert cause in lead[1]
        out = io.StringIO()
        Console(file=out, width=400, markup=False).print(view_of(status))
        first = out.getvalue().splitlines()[0]
        assert first.startswith(f"{level.upper()}: {headline}: ")
        assert cause in first


def test_program_that_never_reached_ec2_is_not_ready_and_its_age_grows() -> None:
    """The shipped alert looks at the age, Kubernetes at the readiness."""
    with Scene() as scene:
        scene.clock.advance(400)
        ec2_silent(scene)
        status, _, body = scene.ask("/readyz")
        assert (status, "ReadTimeoutError" in body) == (503, True)
        assert scene.metric("fleet_reconciler_last_success_age_seconds") == 400


def test_leader_is_not_told_that_it_lost_the_lease_in_a_dry_run() -> None:
    """A dry run never leads, and that is no trouble."""
    with Scene() as scene:
        scene.leads = LeadershipView(enabled=True, leads=False, trouble="this is a dry run")
        scene.board.config_loaded(replace(scene.board.view.config, dry_run=True))
        scene.cycle()
        assert json.loads(scene.ask("/api/status")[2])["verdict"]["level"] == "ok"
