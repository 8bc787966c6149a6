"""The shipped pipelines, as tests read them."""

from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
GITHUB = ROOT / "ci/github-actions.yml"
GITLAB = ROOT / "ci/gitlab-ci.yml"


def github() -> dict[Any, Any]:
    """The workflow; its key `on` is `True`, as YAML 1.1 reads it."""
    found: dict[Any, Any] = yaml.safe_load(GITHUB.read_text())
    return found


def steps_of(job: str) -> list[dict[str, Any]]:
    """The steps of a job on GitHub."""
    found: list[dict[str, Any]] = github()["jobs"][job]["steps"]
    return found


def gitlab_jobs() -> dict[str, dict[str, Any]]:
    """Jobs and templates on GitLab."""
    document = yaml.safe_load(GITLAB.read_text().split("\n---\n")[1])
    return {name: job for name, job in document.items() if isinstance(job, dict)}
