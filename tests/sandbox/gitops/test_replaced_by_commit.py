"""A person commits what EC2 cannot change in a living fleet, and approves its replacement."""

import time

import pytest

from tests.sandbox.gitops.team import Team, sector
from tests.terraform.needs import needs_provider, real_terraform

pytestmark = real_terraform


def waits(team: Team) -> bool:
    """Whether an apply reported that a fleet is not drained yet."""
    return any("drains it first" in said for said in team.ci.said)


@pytest.mark.nightly
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
    # What a replacement makes is new: it takes a plan and an approval, and no schedule does it.
    # The drain may be over before the pipeline comes to its apply.
    team.until(lambda: waits(team) or team.is_live(), "neither applied nor waited for")
    if waits(team):
        team.until(lambda: not team.nodes_of("primary-small"), "never drained")
        team.ci.run_again()
    team.until(lambda: team.is_live() and team.nodes_of("primary-small"), "never replaced")
    seconds = time.monotonic() - began
    after = team.fleets()["primary-small"]
    assert after["FleetId"] != before
    kind = after["TargetCapacitySpecification"]["DefaultTargetCapacityType"]
    assert kind == "on-demand"
    closing_lines.append(f"a replacement by on-demand, from the first commit: {seconds:.0f} s")
