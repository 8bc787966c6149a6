"""A person commits, and nobody does anything else: from git to nodes and back, both loops."""

import time

from tests.sandbox.gitops.team import Team, sector
from tests.terraform.needs import needs_provider, real_terraform

pytestmark = real_terraform


@needs_provider
def test_commits_alone_add_change_and_remove_fleets(team: Team, closing_lines: list[str]) -> None:
    """The promise of the whole project: a commit, a review, and nothing by hand."""
    times: dict[str, float] = {}
    primary, extra = sector("primary", "small"), sector("extra", "medium")
    team.until(team.is_live, "the first config never became live")

    began = team.commit(team.config(primary, extra), "A sector of its own")
    team.until(lambda: team.is_live() and team.nodes_of("extra-medium"), "sector not live")
    times["a new sector, to its first node"] = time.monotonic() - began
    assert set(team.fleets()) == {"primary-small", "extra-medium"}

    more = ", instance_types: [r5.2xlarge], terraform: {tags: {owner: data}}"
    edited = sector("extra", "medium", more).replace("max_capacity: 5", "max_capacity: 7")
    began = team.commit(team.config(primary, edited, ami="ami-0e0d17ed"), "Edit it")
    team.until(team.is_live, "the edit never became live")
    times["an edit of image, types, tags and maximum"] = time.monotonic() - began
    fleet = team.fleets()["extra-medium"]
    assert {t["Key"]: t["Value"] for t in fleet["Tags"]}["owner"] == "data"
    kept = {"sector": "extra"}
    pod = {
        "metadata": {
            "name": "work",
            "annotations": {"sandbox.fleet-reconciler.io/duration": "45"},
        },
        "spec": {
            "containers": [{"name": "main", "image": "batch:1"}],
            "restartPolicy": "Never",
            "nodeSelector": kept,
        },
    }
    team.world.core.create_namespaced_pod("default", pod)
    team.world.until_pods(lambda phases: phases.get("work") == "Running")

    began = team.commit(team.config(primary, ami="ami-0e0d17ed"), "Remove the sector")
    team.until(lambda: any("extra-medium" in said for said in team.ci.said), "nobody objected")
    refusal = next(said for said in team.ci.said if "extra-medium" in said)
    assert "fleet/destroy" in refusal
    assert "list it in the config's allow_destroy to approve that" in refusal
    assert team.nodes_of("extra-medium")

    approved = team.config(primary, ami="ami-0e0d17ed", top="allow_destroy: [extra-medium]\n")
    team.commit(approved, "Approve it")
    # Afterwards it goes with its node, as Kubernetes collects pods whose node is gone.
    team.until(lambda: team.phase("work") == "Succeeded", "the job was not let finish")
    team.until(lambda: "extra-medium" not in team.fleets(), "the fleet never went")
    times["a removal, from the first commit, with a job of 45 s"] = time.monotonic() - began
    assert team.nodes_of("extra-medium") == []
    team.until(team.is_live, "the removal never became live")
    closing_lines.append("; ".join(f"{what}: {seconds:.0f} s" for what, seconds in times.items()))
