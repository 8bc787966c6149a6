"""A commit renames a sector, removes a fleet in use and changes an image: nothing by hand."""

import time

import pytest

from tests.sandbox.gitops.team import Team, sector
from tests.sandbox.gitops.watching import CPU_REQUEST, Watch, fleet_of, small
from tests.sandbox.gitops.workloads import apps, deploy
from tests.terraform.needs import needs_provider, real_terraform

pytestmark = real_terraform

NEW_IMAGE = "ami-0e0d17ed"


@pytest.mark.nightly
@needs_provider
def test_rename_removal_and_image_reach_ec2_by_one_commit(
    team: Team, closing_lines: list[str]
) -> None:
    """A renamed sector was not created, and a removal ended only when a person ran a pipeline."""
    primary, watch = sector("primary", "small"), Watch(team)
    team.commit(team.config(primary, small("old"), small("web", "medium")), "Two sectors")
    deploy(team, "renamed", {"sector": "old"}, cpu=str(CPU_REQUEST), memory="1Gi")
    deploy(team, "moved", {"sector": "web"}, cpu=str(CPU_REQUEST), memory="1Gi")
    team.until(lambda: fleet_of(team, "renamed") == "old-small", "no node of the old sector")
    team.until(lambda: fleet_of(team, "moved") == "web-medium", "no medium node")
    team.until(team.is_live, "the first config never became live")

    approved = "allow_destroy: [old-small, web-medium]\n"
    sectors = (primary, small("new", minimum=1), small("web"))
    text = team.config(*sectors, top=approved, ami=NEW_IMAGE)
    began = team.commit(text, "Rename a sector, remove a fleet, another image")
    watch.until(lambda: "new-small" in team.fleets(), "the new sector was never made")
    watch.expects_new = True
    seconds = time.monotonic() - began
    closing_lines.append(f"an image and a new sector beside two drains: {seconds:.0f} s")
    watch.until(lambda: "web-medium" not in team.fleets(), "the removal never ended")
    assert fleet_of(team, "moved") == "web-small"
    watch.until(lambda: "sector=old" in watch.removal_of("old-small"), "no reason was shown")
    assert fleet_of(team, "renamed") == "old-small"
    assert any("old-small still has 1 node" in said for said in team.ci.said)
    images = team.world.ec2.describe_launch_template_versions(
        LaunchTemplateName="analytics-primary-small", Versions=["$Latest"]
    )
    (latest,) = images["LaunchTemplateVersions"]
    assert latest["LaunchTemplateData"]["ImageId"] == NEW_IMAGE

    watch.until(lambda: team.nodes_of("new-small"), "the new sector has no node")
    selector = {"spec": {"template": {"spec": {"nodeSelector": {"sector": "new"}}}}}
    apps(team).patch_namespaced_deployment("renamed", "default", selector)
    watch.until(lambda: fleet_of(team, "renamed") == "new-small", "the pod never moved")
    watch.until(lambda: "old-small" not in team.fleets(), "the old sector never went")
    watch.until(team.is_live, "the rename never became live")
    seconds = time.monotonic() - began
    closing_lines.append(f"a sector renamed, its owner's pods moved: {seconds:.0f} s")
    assert (watch.without_place, watch.early) == ([], [])
