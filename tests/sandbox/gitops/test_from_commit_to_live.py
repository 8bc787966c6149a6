"""A person commits, and nobody does anything else: from git to nodes and back, both loops."""

import time

import pytest

from tests.sandbox.gitops.team import Team, sector
from tests.sandbox.gitops.workloads import job
from tests.terraform.needs import needs_provider, real_terraform

pytestmark = real_terraform

GROUP = "analytics-grouped"


@needs_provider
@pytest.mark.parametrize(
    "going",
    [
        pytest.param(("extra-medium",), id="fleet"),
        pytest.param(
            ("extra-medium", "grouped-large"), id="fleet-and-group", marks=pytest.mark.nightly
        ),
    ],
)
def test_commits_alone_add_change_and_remove(
    team: Team, closing_lines: list[str], going: tuple[str, ...]
) -> None:
    """The promise of the whole project: a commit, a review, and nothing by hand."""
    times: dict[str, float] = {}
    primary, extra = sector("primary", "small"), sector("extra", "medium")
    group = sector("grouped", "large", f", provider: asg, auto_scaling_group: {GROUP}")
    grouped = [group] if "grouped-large" in going else []
    team.until(team.is_live, "the first config never became live")

    began = team.commit(team.config(primary, extra, *grouped), "Sectors of their own")
    team.until(
        lambda: team.is_live() and all(team.nodes_of(name) for name in going), "sectors not live"
    )
    times["new sectors, to their first nodes"] = time.monotonic() - began
    assert set(team.fleets()) == {"primary-small", "extra-medium"}
    assert team.groups() == [GROUP for _ in grouped]

    more = ", instance_types: [r5.2xlarge], terraform: {tags: {owner: data}}"
    edited = sector("extra", "medium", more).replace("max_capacity: 5", "max_capacity: 7")
    text = team.config(primary, edited, *grouped, ami="ami-0e0d17ed")
    began = team.commit(text, "Edit the fleet")
    team.until(team.is_live, "the edit never became live")
    times["an edit of image, types, tags and maximum"] = time.monotonic() - began
    fleet = team.fleets()["extra-medium"]
    assert {t["Key"]: t["Value"] for t in fleet["Tags"]}["owner"] == "data"
    works = tuple(f"work-{name}" for name in going)
    for work, name in zip(works, going, strict=True):
        job(team, work, {"sector": name.partition("-")[0]}, seconds=45)
    team.world.until_pods(lambda phases: all(phases.get(each) == "Running" for each in works))

    began = team.commit(team.config(primary, ami="ami-0e0d17ed"), "Remove the sectors")
    team.until(lambda: any("extra-medium" in said for said in team.ci.said), "nobody objected")
    refusal = next(said for said in team.ci.said if "extra-medium" in said)
    for name in going:
        assert f"{name}: fleet/destroy" in refusal
        assert team.nodes_of(name)
    assert "list it in the config's allow_destroy to approve that" in refusal

    approved = f"allow_destroy: [{', '.join(going)}]\n"
    team.commit(team.config(primary, ami="ami-0e0d17ed", top=approved), "Approve it")
    # Afterwards they go with their nodes, as Kubernetes collects pods whose node is gone.
    ended: set[str] = set()

    def have_ended() -> bool:
        ended.update(each for each in works if team.phase(each) == "Succeeded")
        return ended == set(works)

    team.until(have_ended, "a job was not let finish")
    team.until(lambda: "extra-medium" not in team.fleets(), "the fleet never went")
    team.until(lambda: not team.groups(), "the group never went")
    times["removals, from the first commit, with jobs of 45 s"] = time.monotonic() - began
    assert not any(team.nodes_of(name) for name in going)
    team.until(team.is_live, "the removals never became live")
    assert team.last_plan() == 0
    told = "; ".join(f"{what}: {seconds:.0f} s" for what, seconds in times.items())
    closing_lines.append(f"{' and '.join(going)}: {told}")
