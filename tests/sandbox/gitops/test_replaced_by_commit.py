"""A person commits what EC2 cannot change in a living fleet, and approves its replacement."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sandbox.gitops.team import Team, running_team, sector
from tests.sandbox.gitops.test_ci_on_aws import needs_provider

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.terraform,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(
        shutil.which("terraform") is None,
        reason="the terraform program is not on the PATH; install it to run these",
    ),
]


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    """Nothing is in EC2 yet."""
    with running_team(tmp_path) as running:
        yield running


@needs_provider
def test_commits_alone_replace_a_fleet_with_nodes(team: Team, closing_lines: list[str]) -> None:
    """A fleet that has to be made anew goes only approved and drained, the new one first."""
    team.until(team.is_live, "the first config never became live")
    before = team.fleets()["primary-small"]["FleetId"]
    on_demand = sector("primary", "small", ", spot: false")
    began = team.commit(team.config(on_demand), "On demand")
    team.until(lambda: any("fleet/replace" in said for said in team.ci.said), "nobody objected")
    assert team.fleets()["primary-small"]["FleetId"] == before
    approved = team.config(on_demand, top="allow_destroy: [primary-small]\n")
    team.commit(approved, "Approve the replacement")
    team.until(lambda: team.is_live() and team.nodes_of("primary-small"), "never replaced")
    seconds = time.monotonic() - began
    after = team.fleets()["primary-small"]
    assert after["FleetId"] != before
    kind = after["TargetCapacitySpecification"]["DefaultTargetCapacityType"]
    assert kind == "on-demand"
    closing_lines.append(f"a replacement by on-demand, from the first commit: {seconds:.0f} s")
