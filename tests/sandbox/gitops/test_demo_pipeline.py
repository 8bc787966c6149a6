"""The small CI runner of the sandbox, over a real repository and real Terraform."""

import os
import shutil
from pathlib import Path

import pytest

from reconciler.demo.pipeline import PipelineJob, run_pipeline
from tests.git_remote import git, make_remote

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.terraform,
    pytest.mark.skipif(
        shutil.which("terraform") is None,
        reason="the terraform program is not on the PATH; install it to run these",
    ),
]
_ENVIRONMENT = dict(os.environ)  # noqa: TID251 - the processes need PATH and HOME


def root(state: Path, text: str = "one") -> str:
    """A root module whose state outlives the checkout."""
    return (
        f'terraform {{\n  backend "local" {{\n    path = "{state}"\n  }}\n}}\n'
        f'resource "terraform_data" "thing" {{\n  input = "{text}"\n}}\n'
    )


def job(work: Path, *, apply: bool = True) -> PipelineJob:
    """The newest commit of a person's clone."""
    return PipelineJob(
        repository=str(work.parent / "remote.git"),
        commit=git(work, "rev-parse", "HEAD"),
        environment=_ENVIRONMENT,
        timeout_seconds=120,
        apply=apply,
    )


def test_commit_is_planned_and_applied_from_a_fresh_checkout(tmp_path: Path) -> None:
    """The demo must show what a real pipeline would do, and a second run must find no work."""
    work = make_remote(tmp_path, {"terraform/main.tf": root(tmp_path / "state")})
    first = run_pipeline(job(work))
    assert first.succeeded, first.steps[-1].errors
    assert [step.name for step in first.steps] == ["clone", "checkout", "plan", "apply"]
    assert "1 to create" in first.summary
    assert (tmp_path / "state").is_file()
    assert "No changes" in run_pipeline(job(work)).summary


def test_plan_alone_changes_nothing(tmp_path: Path) -> None:
    """A pull request must not apply."""
    work = make_remote(tmp_path, {"terraform/main.tf": root(tmp_path / "state")})
    assert run_pipeline(job(work, apply=False)).succeeded
    assert not (tmp_path / "state").exists()


def test_broken_commit_stops_at_the_plan_and_says_why(tmp_path: Path) -> None:
    """The narration must show the error, not a traceback."""
    work = make_remote(
        tmp_path, {"terraform/main.tf": 'resource "terraform_data" "x" {\n no = 1\n}'}
    )
    run = run_pipeline(job(work))
    assert (run.steps[-1].name, run.steps[-1].exit_code) == ("plan", 1)
    assert run.steps[-1].errors.startswith("error: main.tf:2")
