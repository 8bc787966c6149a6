"""What a pipeline's stage shows beside its commit."""

from pathlib import Path

import pytest

from reconciler.bootstrap.forge import stage_shown
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
