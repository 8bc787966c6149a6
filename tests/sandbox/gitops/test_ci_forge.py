"""What pipelines call around a plan: which roots there are, and the comment on the pull request."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests import command
from tests.forge_server import PROJECT, TOKEN, Fault, forge_server, on_branch
from tests.git_remote import git
from tests.sandbox.gitops.stand_in import planner

pytestmark = pytest.mark.sandbox

TIMEOUT_SECONDS = 60
_ENVIRONMENT = {
    key: value
    for key, value in os.environ.items()  # noqa: TID251 - without those of a real pipeline
    if not key.startswith(("GITHUB_", "CI_", "RECONCILER_"))
}


def ci(*arguments: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """`reconciler ci` as a pipeline calls it."""
    return command.reconciler(
        "ci",
        *arguments,
        cwd=cwd,
        env=_ENVIRONMENT | variables,
        timeout_seconds=TIMEOUT_SECONDS,
    )


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    """What `ci plan` leaves."""
    (tmp_path / "plan").mkdir()
    (tmp_path / "plan/summary.md").write_text("## 2 fleets to create\n")
    return tmp_path / "plan"


def on_pull_request(kind: str, address: str) -> dict[str, str]:
    """What a job of pull request 7 has in its environment, with a token."""
    token = {"RECONCILER_FORGE_TOKEN": TOKEN}
    if kind == "github":
        named = {"GITHUB_API_URL": address, "GITHUB_REPOSITORY": PROJECT}
        return {**token, **named, "GITHUB_REF": "refs/pull/7/merge"}
    named = {"CI_API_V4_URL": address, "CI_PROJECT_PATH": PROJECT}
    return {**token, **named, "CI_MERGE_REQUEST_IID": "7"}


@pytest.mark.parametrize("kind", ["github", "gitlab"])
def test_summary_is_shown_on_the_pull_request_once(plan: Path, kind: str) -> None:
    """The reviewer approves what is shown there."""
    with forge_server(kind) as forge:
        where = on_pull_request(kind, forge.address)
        for _ in range(2):
            done = ci("comment", "--plan", "plan", cwd=plan.parent, **where)
            assert (done.returncode, done.stdout) == (0, "shown on pull request 7\n"), done.stderr
    [comment] = forge.comments
    assert (comment["number"], comment["body"].endswith("## 2 fleets to create\n")) == (7, True)


@pytest.mark.parametrize("kind", ["github", "gitlab"])
def test_push_without_a_plan_takes_back_what_an_earlier_one_showed(plan: Path, kind: str) -> None:
    """The comment went on saying "2 fleets to create" of a config that is refused by now."""
    with forge_server(kind) as forge:
        where = on_pull_request(kind, forge.address)
        assert ci("comment", "--plan", "plan", cwd=plan.parent, **where).returncode == 0
        (plan / "summary.md").unlink()
        done = ci("comment", "--plan", "plan", cwd=plan.parent, **where)
        assert (done.returncode, done.stderr.count("\n")) == (1, 1)
        assert "there is no summary" in done.stderr
    [comment] = forge.comments
    assert "2 fleets to create" not in comment["body"]
    assert "No plan" in comment["body"]


def test_push_pipeline_has_nothing_to_comment_on(plan: Path) -> None:
    """The same job runs on the main branch."""
    done = ci("comment", "--plan", "plan", cwd=plan.parent, GITHUB_REF="refs/heads/main")
    assert (done.returncode, done.stdout.count("\n")) == (0, 1)


def test_missing_summary_is_one_line(tmp_path: Path) -> None:
    """A plan that failed before its summary must not hide behind a traceback."""
    done = ci("comment", "--plan", "plan", cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "ci plan" in done.stderr


def roots_of(repository: Path, *arguments: str) -> list[dict[str, str]]:
    """What `ci roots` says of a repository with one directory per cluster."""
    pattern = ["--config", "clusters/*/sectors.yaml", "--output", "json"]
    done = ci("roots", *pattern, *arguments, cwd=repository)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, str]] = json.loads(done.stdout)["roots"]
    return found


def repository_of(folder: Path, **configs: str) -> Path:
    """A repository with one directory per cluster."""
    folder.mkdir(exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    for name, text in configs.items():
        (folder / "clusters" / name).mkdir(parents=True)
        (folder / "clusters" / name / "sectors.yaml").write_text(text)
    git(folder, "add", "--all")
    git(folder, "commit", "-qm", "Clusters")
    return folder


def test_roots_name_their_cluster_for_a_role_each(tmp_path: Path) -> None:
    """One role for all clusters of a repository could change every one of them."""
    configs = {"a": "cluster: one\n", "b": "cluster_name: two\n", "c": "cluster: [\n", "d": ""}
    found = roots_of(repository_of(tmp_path, **configs))
    assert [root["cluster"] for root in found] == ["one", "two", "", ""]


def test_region_that_a_pull_request_adds_is_a_root_before_it_is_rendered(tmp_path: Path) -> None:
    """Nobody would see its plan before the merge."""
    text = (
        "cluster: one\nregions: [us-west-2, us-east-1]\nsectors: {primary: {kind: memory, fleets:"
        " [{size: small, regions: [us-west-2, us-east-1]}]}}\n"
    )
    repository = repository_of(tmp_path, a=text, b="cluster: two\n")
    home, further = "clusters/a/terraform", "clusters/a/terraform-us-east-1"
    found = [root["dir"] for root in roots_of(repository)]
    assert found == [home, further, "clusters/b/terraform"]
    assert roots_of(repository, "--rendered") == []


def test_roots_have_names_of_their_own_that_artifacts_may_have(tmp_path: Path) -> None:
    """Two plans under one name: one cluster would be handed the other's."""
    names = ["a", "a.b", "a:b", "é", "x" * 200]
    repository = repository_of(tmp_path, **dict.fromkeys(names, "cluster: c\n"))
    (repository / "clusters/a/b").mkdir()
    found = [root["name"] for root in roots_of(repository)]
    assert len(set(found)) == len(names)
    assert "clusters.a.terraform" in found
    assert all(re.fullmatch(r"[A-Za-z0-9._-]{1,120}", name) for name in found)


def test_odd_names_and_links_are_no_roots_and_stop_no_other(tmp_path: Path) -> None:
    """One old file system's name would stop the pipeline of every cluster."""
    repository = repository_of(tmp_path, a="cluster: one\n")
    odd = repository / "clusters" / os.fsdecode(b"caf\xe9")
    odd.mkdir()
    (odd / "sectors.yaml").write_text("cluster: two\n")
    (repository / "clusters/linked").mkdir()
    (repository / "clusters/linked/sectors.yaml").symlink_to("../a/sectors.yaml")
    git(repository, "add", "--all")
    git(repository, "commit", "-qm", "Odd ones")
    assert [root["config"] for root in roots_of(repository)] == ["clusters/a/sectors.yaml"]


def test_config_that_is_not_there_is_no_root(tmp_path: Path) -> None:
    """A job for it would look for a directory, a cluster and a role that do not exist."""
    done = ci("roots", "--output", "json", cwd=repository_of(tmp_path, a="cluster: one\n"))
    assert (done.returncode, json.loads(done.stdout)) == (0, {"gone": [], "roots": []})
    assert "no sector config is called sectors.yaml" in done.stderr


def test_pattern_that_finds_nothing_is_said(tmp_path: Path) -> None:
    """A mistyped pattern plans nothing, and everything is green."""
    repository = repository_of(tmp_path, a="cluster: one\n")
    done = ci("roots", "--config", "cluster/*/sectors.yaml", "--output", "json", cwd=repository)
    assert (done.returncode, json.loads(done.stdout)["roots"]) == (0, [])
    assert done.stderr == (
        "warning: no sector config is called cluster/*/sectors.yaml"
        " (* matches one directory, and ** is the same)\n"
    )


def test_submodule_that_a_pattern_matches_is_said(tmp_path: Path) -> None:
    """Its cluster has no job, and everything is green."""
    repository = repository_of(tmp_path, a="cluster: one\n")
    commit = git(repository, "rev-parse", "HEAD")
    git(repository, "update-index", "--add", "--cacheinfo", f"160000,{commit},clusters/b")
    git(repository, "commit", "-qm", "A submodule")
    done = ci("roots", "clusters/*/sectors.yaml", "--output", "json", cwd=repository)
    assert [root["config"] for root in json.loads(done.stdout)["roots"]] == [
        "clusters/a/sectors.yaml"
    ]
    assert done.stderr.startswith("warning: clusters/b is a submodule, which is not followed: ")


def test_new_cluster_is_no_root_on_the_branch_before_it_is_rendered(tmp_path: Path) -> None:
    """Every new cluster's first commit would end in a red pipeline: there is nothing to plan."""
    repository = repository_of(tmp_path, a="cluster: one\n", b="cluster: two\n")
    (repository / "clusters/a/terraform").mkdir()
    (repository / "clusters/a/terraform/fleets.auto.tfvars.json").write_text("{}\n")
    git(repository, "add", "--all")
    git(repository, "commit", "-qm", "Render a")
    assert [root["name"] for root in roots_of(repository, "--rendered")] == ["clusters.a.terraform"]
    assert len(roots_of(repository)) == 2


def test_roots_with_approved_removals_alone_are_looked_at_every_few_minutes(
    tmp_path: Path,
) -> None:
    """Fifty clusters would start fifty jobs each time to find nothing to remove."""
    approved = "cluster: two\nallow_destroy: [old-small]\n"
    configs = {"a": "cluster: one\nallow_destroy: []\n", "b": approved, "c": "cluster: three\n"}
    found = roots_of(repository_of(tmp_path, **configs), "--removing")
    assert [root["cluster"] for root in found] == ["two"]


def test_config_that_was_removed_is_said_to_leave_its_fleets(tmp_path: Path) -> None:
    """A deleted folder is no removal: nothing plans these fleets any more, and they cost money."""
    repository = repository_of(tmp_path, a="cluster: one\n", b="cluster: two\n")
    first = git(repository, "rev-parse", "HEAD")
    git(repository, "rm", "-qr", "clusters/b")
    git(repository, "commit", "-qm", "Remove b")
    pattern = ("--config", "clusters/*/sectors.yaml", "--output", "json")
    done = ci("roots", *pattern, "--since", first, cwd=repository)
    assert json.loads(done.stdout) == {"gone": ["clusters/b/sectors.yaml"], "roots": []}
    assert "clusters/b/sectors.yaml" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ["policy.yaml", "types/catalogue.yaml"])
def test_pull_request_of_a_file_that_a_config_names_has_a_job_that_reads_it(
    tmp_path: Path, name: str
) -> None:
    """With its fault on the branch the capacity loop takes over no later config, and all is green.

    A file of that name beside a config that does not name it is none of its own.
    """
    naming = (
        "cluster: one\ndescheduler: {policy_file: policy.yaml}\ncatalogue: types/catalogue.yaml\n"
    )
    repository = repository_of(tmp_path, a=naming, b="cluster: two\n", c="cluster: [\n")
    first = git(repository, "rev-parse", "HEAD")
    for cluster in "abc":
        file = repository / "clusters" / cluster / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("broken: [\n")
    git(repository, "add", "--all")
    git(repository, "commit", "-qm", "Change files beside the configs")
    assert [root["cluster"] for root in roots_of(repository, "--since", first)] == ["one"]


def test_config_that_moved_is_not_said_to_be_removed(tmp_path: Path) -> None:
    """Whoever brings it back makes two configs of one cluster."""
    state = "terraform: {backend: {bucket: states, key: KEY, region: us-west-2}}\n"
    text = {key: f"cluster: one\n{state.replace('KEY', key)}" for key in ("a", "b", "c")}
    repository = repository_of(tmp_path, **text)
    first = git(repository, "rev-parse", "HEAD")
    for old, new in (("a", "x"), ("b", "y"), ("c", "z")):
        git(repository, "mv", f"clusters/{old}", f"clusters/{new}")
    for folder, edited in (("y", text["b"]), ("z", text["c"].replace("key: c", "key: d"))):
        config = repository / f"clusters/{folder}/sectors.yaml"
        config.write_text(f"{edited}sleep_interval: 30s\n")
    git(repository, "commit", "-qam", "Move folders")
    pattern = ("--config", "clusters/*/sectors.yaml", "--output", "json")
    done = ci("roots", *pattern, "--since", first, cwd=repository)
    found = json.loads(done.stdout)
    assert found["gone"] == ["clusters/c/sectors.yaml"], "its cluster has another state"
    assert [root["config"][9] for root in found["roots"]] == ["x", "y", "z"]
    for old, new in (("a", "x"), ("b", "y")):
        assert f"clusters/{old}/sectors.yaml moved to clusters/{new}/sectors.yaml" in done.stderr
    assert done.stderr.count(" moved to ") == 2


def test_roots_are_those_changed_since_a_commit(tmp_path: Path) -> None:
    """One job per cluster, and none for clusters that nobody touched."""
    git(tmp_path, "init", "-q", "-b", "main")
    for name in ("a", "b"):
        (tmp_path / "clusters" / name).mkdir(parents=True)
        (tmp_path / "clusters" / name / "sectors.yaml").write_text(f"cluster: {name}\n")
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "-qm", "Two clusters")
    first = git(tmp_path, "rev-parse", "HEAD")
    (tmp_path / "clusters/b/sectors.yaml").write_text("cluster: b2\n")
    git(tmp_path, "commit", "-qam", "Change b")

    def roots(*arguments: str) -> list[str]:
        return [root["dir"] for root in roots_of(tmp_path, *arguments)]

    assert roots() == ["clusters/a/terraform", "clusters/b/terraform"]
    assert roots("--since", first) == ["clusters/b/terraform"]
    assert len(roots("--since", "0" * 40)) == 2
    refused = ci("roots", "--since", "--output=x", cwd=tmp_path)
    assert refused.returncode == 2


def test_finish_shows_its_success_when_the_forge_is_there_again(tmp_path: Path) -> None:
    """The last removal was done while the forge was away: the change counted as not applied."""
    config = "cluster: one\nallow_destroy: [old-small]\nsectors: {}\n"
    repository = repository_of(tmp_path / "work", a=config)
    where = repository / "clusters/a"
    render = ("render", "--config", str(where / "sectors.yaml"), "--out", str(where / "terraform"))
    assert command.reconciler(*render, env=_ENVIRONMENT, timeout_seconds=60).returncode == 0
    git(repository, "add", "--all")
    git(repository, "commit", "-qm", "Render")
    program = str(planner(tmp_path / "terraform"))
    with forge_server("github") as forge:
        forge.faults = [Fault(status=503), Fault(status=503)]
        for seen in (0, 1, 1):
            done = ci(
                *("finish", "--dir", str(where / "terraform")),
                cwd=repository,
                **on_branch(forge.address),
                RECONCILER_TERRAFORM=program,
            )
            assert done.returncode == 0, done.stderr
            assert len(forge.statuses) == seen
        [(_, status)] = forge.statuses
    assert status["context"] == "fleet-reconciler/apply/clusters/a/terraform"
    assert status["state"] == "success"
