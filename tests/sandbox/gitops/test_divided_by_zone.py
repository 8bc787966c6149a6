"""A commit divides a fleet into one for each zone: its pods move, and nothing by hand."""

import time

import pytest

from tests.sandbox.gitops.team import Team, sector
from tests.sandbox.gitops.watching import CPU_REQUEST, Watch, fleet_of, small
from tests.sandbox.gitops.workloads import deploy
from tests.terraform.needs import needs_provider, real_terraform

pytestmark = real_terraform

ZONES = ("us-west-2a", "us-west-2b")
ZONAL = [f"web-small-{zone}" for zone in ZONES]


def divided(*zones: str) -> str:
    """The sector `web` with a fleet of one zone each."""
    fleets = [f"    - {{size: small, zone: {zone}, max_capacity: 3}}\n" for zone in zones]
    return "  web:\n    kind: memory\n    fleets:\n" + "".join(fleets)


@pytest.mark.nightly
@needs_provider
def test_fleet_is_divided_by_zone_and_its_pods_follow(team: Team, closing_lines: list[str]) -> None:
    """Both at once, with and without zone, are refused; so the way is a removal and two fleets."""
    primary, watch = sector("primary", "small"), Watch(team)
    team.commit(team.config(primary, small("web")), "A service")
    deploy(team, "moved", {"sector": "web"}, cpu=str(CPU_REQUEST), memory="1Gi")
    team.until(lambda: fleet_of(team, "moved") == "web-small", "no node of the one fleet")
    team.until(team.is_live, "the first config never became live")

    text = team.config(primary, divided(*ZONES), top="allow_destroy: [web-small]\n")
    began = team.commit(text, "A fleet for each zone")
    watch.until(lambda: set(ZONAL) <= set(team.fleets()), "the zonal fleets were never made")
    watch.until(lambda: fleet_of(team, "moved") in ZONAL, "the pod never moved")
    watch.until(lambda: "web-small" not in team.fleets(), "the old fleet never went")
    watch.until(team.is_live, "the division never became live")
    seconds = time.monotonic() - began
    assert watch.without_place == []
    for zone, name in zip(ZONES, ZONAL, strict=True):
        (config,) = team.fleets()[name]["LaunchTemplateConfigs"]
        subnets = {override["SubnetId"] for override in config["Overrides"]}
        assert subnets == {team.ids.subnet_ids[zone]}
    closing_lines.append(f"a fleet divided by zone, its pods moved: {seconds:.0f} s")
