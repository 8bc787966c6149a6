"""At which commit the shipped pipelines apply."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.git_remote import git, make_remote, write_and_push
from tests.project.pipelines import GITHUB, github, gitlab_jobs, steps_of

TIMEOUT_SECONDS = 60
BRANCH = "${{ format('refs/heads/{0}', env.BRANCH) }}"
PROGRAM = """#!/bin/sh
echo "$*"
git rev-parse HEAD
cat plan/report.json
"""
"""Stands for `reconciler`: it says with what it was called, where, and for which plan."""


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A person's clone of a config repository."""
    return make_remote(tmp_path, {"sectors.yaml": "one\n", ".gitignore": "plan/\n"})


def on_gitlab(work: Path, job: str) -> subprocess.CompletedProcess[str]:
    """A job's script in a runner's checkout of the first commit, with the plan of its pipeline.

    The repository has a tag that is called as the branch is.
    """
    runner = work.parent / "runner"
    first = git(work, "rev-list", "--max-parents=0", "HEAD")
    git(work, "push", "-q", "origin", f"{first}:refs/tags/main")
    git(work.parent, "clone", "-q", "--no-tags", "remote.git", "runner")
    git(runner, "checkout", "-q", "--detach", first)
    (runner / "plan").mkdir()
    (runner / "plan/report.json").write_text("planned\n")
    program = work.parent / "reconciler"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    script = gitlab_jobs()[f"{job} $[[ inputs.root ]]"]["script"]
    return subprocess.run(
        ["/bin/bash", "-e", "-o", "pipefail", "-c", "\n".join(script)],
        cwd=runner,
        env={
            "PATH": f"{work.parent}:{os.environ['PATH']}",  # noqa: TID251 - git is somewhere there
            "CI_DEFAULT_BRANCH": "main",
            "ROOT": "terraform",
            "CONFIG": "sectors.yaml",
        },
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )


@pytest.mark.parametrize("job", ["apply", "finish"])
def test_gitlab_changes_ec2_at_the_head_of_the_branch(work: Path, job: str) -> None:
    """The button of an older pipeline created the fleets of a commit that was reverted since."""
    newer = write_and_push(work, "sectors.yaml", "reverted\n", "Revert it")
    done = on_gitlab(work, job)
    assert done.returncode == 0, done.stderr
    called, commit, planned = done.stdout.splitlines()
    assert called.startswith(f"ci {job} ")
    assert ("--allow-newer-commit" in called) == (job == "apply")
    assert (commit, planned) == (newer, "planned")


def test_gitlab_applies_no_plan_that_a_newer_commit_brings(work: Path) -> None:
    """The folder is ignored by git, which then overwrites what is there without a word."""
    (work / "plan").mkdir()
    (work / "plan/report.json").write_text("of a commit\n")
    git(work, "add", "--force", "plan/report.json")
    git(work, "commit", "-qm", "A plan of its own")
    git(work, "push", "-q", "origin", "HEAD:main")
    done = on_gitlab(work, "apply")
    assert (done.returncode != 0, done.stdout) == (True, "")
    assert "plan/report.json" in done.stderr


def checkout_of(job: str) -> dict[str, Any]:
    """With what a job on GitHub checks out."""
    (found,) = [step for step in steps_of(job) if "actions/checkout" in step.get("uses", "")]
    options: dict[str, Any] = dict(found["with"])
    return options


def test_github_changes_ec2_at_the_head_of_the_branch() -> None:
    """A job of an older run would otherwise not see what was merged since."""
    assert checkout_of("apply")["ref"] == "${{ github.ref }}"
    assert checkout_of("finish")["ref"] == BRANCH
    assert "--allow-newer-commit" in str(steps_of("apply"))


def test_github_names_the_branch_in_two_places_that_must_agree() -> None:
    """With another branch in `branches` alone everything was planned, green, and never applied."""
    workflow = github()
    assert workflow[True]["push"]["branches"] == [workflow["env"]["BRANCH"]] == ["main"]
    code = re.sub(r"(?m)#.*$", "", GITHUB.read_text())
    assert re.findall(r".*\bmain\b.*", code) == ["    branches: [main] ", "  BRANCH: main"]
    first = steps_of("roots")[0]
    assert first["if"] == "github.event_name == 'push' && github.ref_name != env.BRANCH"
    assert first["run"].endswith("exit 1\n")
    of_branch = "${{ github.ref == format('refs/heads/{0}', env.BRANCH) }}"
    assert workflow["jobs"]["roots"]["outputs"]["applies"] == of_branch


def test_github_schedules_look_at_the_branch_that_is_applied() -> None:
    """GitHub starts a schedule on the default branch, whose configs may be others or none."""
    for job in ("finish", "drift"):
        assert checkout_of(job)["ref"] == BRANCH, job
    ref = f"${{{{ github.event_name == 'schedule' && {BRANCH[4:-3]} || '' }}}}"
    assert checkout_of("roots")["ref"] == ref
