"""What a pipeline's stage shows beside its commit, and how it knows its pull request."""

from pathlib import Path

import pytest

from reconciler.bootstrap.forge import pipeline_request, stage_shown
from tests.git_remote import git


def test_token_that_is_gone_does_not_fail_the_stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An apply that is done would be red, and its own error hidden by that of the status."""
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "First")
    for name in ("GITHUB_REF", "CI_API_V4_URL", "RECONCILER_FORGE_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GITHUB_API_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("GITHUB_REPOSITORY", "team/fleets")
    monkeypatch.setenv("RECONCILER_FORGE_TOKEN_FILE", str(tmp_path / "gone"))
    stage_shown("apply", tmp_path)("success", "done")


@pytest.mark.parametrize(
    "variables",
    [
        {
            "GITHUB_API_URL": "https://a.example",
            "GITHUB_REPOSITORY": "a/b",
            "GITHUB_REF": f"refs/pull/{odd}/merge",
            "CI_API_V4_URL": "https://a.example",
            "CI_PROJECT_PATH": "a/b",
            "CI_MERGE_REQUEST_IID": odd,
        }
        for odd in ("\u00b2", "\u0663", "9" * 5000, "")
    ],
)
@pytest.mark.parametrize("forge", ["GITHUB_API_URL", "CI_API_V4_URL"])
def test_number_that_is_none_names_no_pull_request(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], forge: str
) -> None:
    """The stage would end with the words of Python."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv({"GITHUB_API_URL", "CI_API_V4_URL"}.difference({forge}).pop())
    monkeypatch.setenv("RECONCILER_FORGE_TOKEN", "token")
    assert pipeline_request() is None
