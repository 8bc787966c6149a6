"""A person commits, and nobody does anything else: from git to nodes and back, both loops."""

import time

from tests.sandbox.gitops.team import Team, sector
from tests.sandbox.gitops.workloads import job
from tests.terraform.needs import needs_provider, real_terraform

pytestmark = real_terraform


GROUP = "analytics-grouped"
GOING = ("extra-medium", "grouped-large")
"""An EC2 Fleet and an Auto Scaling group, which are made and removed side by side."""


@needs_provider
def test_commits_alone_add_change_and_remove_fleets_and_groups(
    team: Team, closing_lines: list[str]
) -> None:
    """The promise of the whole project: a commit, a review, and nothing by hand."""
    times: dict[str, float] = {}
    primary, extra = sector("primary", "small"), sector("extra", "medium")
    grouped = sector("grouped", "large", f", provider: asg, auto_scaling_group: {GROUP}")
    team.until(team.is_live, "the first config never became live")

    began = team.commit(team.config(primary, extra, grouped), "Sectors of their own")
    team.until(
        lambda: team.is_live() and all(team.nodes_of(name) for name in GOING), "sectors not live"
    )
    times["two new sectors, to their first nodes"] = time.monotonic() - began
    assert set(team.fleets()) == {"primary-small", "extra-medium"}
    assert team.groups() == [GROUP]

    more = ", instance_types: [r5.2xlarge], terraform: {tags: {owner: data}}"
    edited = sector("extra", "medium", more).replace("max_capacity: 5", "max_capacity: 7")
    text = team.config(primary, edited, grouped, ami="ami-0e0d17ed")
    began = team.commit(text, "Edit the fleet")
    team.until(team.is_live, "the edit never became live")
    times["an edit of image, types, tags and maximum"] = time.monotonic() - began
    fleet = team.fleets()["extra-medium"]
    assert {t["Key"]: t["Value"] for t in fleet["Tags"]}["owner"] == "data"
    for name in ("extra", "grouped"):
        job(team, f"work-{name}", {"sector": name}, seconds=45)
    works = ("work-extra", "work-grouped")
    team.world.until_pods(lambda phases: all(phases.get(each) == "Running" for each in works))

    began = team.commit(team.config(primary, ami="ami-0e0d17ed"), "Remove both sectors")
    team.until(lambda: any("extra-medium" in said for said in team.ci.said), "nobody objected")
    refusal = next(said for said in team.ci.said if "extra-medium" in said)
    for name in GOING:
        assert f"{name}: fleet/destroy" in refusal
        assert team.nodes_of(name)
    assert "list it in the config's allow_destroy to approve that" in refusal

    approved = f"allow_destroy: [{', '.join(GOING)}]\n"
    team.commit(team.config(primary, ami="ami-0e0d17ed", top=approved), "Approve it")
    # Afterwards they go with their nodes, as Kubernetes collects pods whose node is gone.
    ended: set[str] = set()

    def have_ended() -> bool:
        ended.update(each for each in works if team.phase(each) == "Succeeded")
        return ended == set(works)

    team.until(have_ended, "a job was not let finish")
    team.until(lambda: "extra-medium" not in team.fleets(), "the fleet never went")
    team.until(lambda: not team.groups(), "the group never went")
    times["two removals, from the first commit, with jobs of 45 s"] = time.monotonic() - began
    assert [team.nodes_of(name) for name in GOING] == [[], []]
    team.until(team.is_live, "the removals never became live")
    assert team.last_plan() == 0
    closing_lines.append("; ".join(f"{what}: {seconds:.0f} s" for what, seconds in times.items()))
