"""Options that contradict each other, or that nothing reads, end a command at its beginning."""

from pathlib import Path

import pytest

from reconciler.cli.main import run


@pytest.mark.parametrize(
    "command",
    [
        ["run", "production.yaml", "--config", "staging.yaml"],
        ["snapshot", "production.yaml", "--config", "staging.yaml", "--out", "today"],
        ["status", "production.yaml", "--config", "staging.yaml"],
    ],
)
def test_two_configs_are_refused(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """The loop would act on one of two clusters, and on which one the help does not say."""
    assert run(command) == 2
    assert "names staging.yaml, and the argument production.yaml" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [
        ["run", "production.yaml"],
        ["snapshot", "production.yaml", "--out", "today"],
        ["run", "production.yaml", "--config", "production.yaml"],
    ],
)
def test_argument_outranks_the_variable(
    command: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Whoever has the variable in the profile names another config now and then."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RECONCILER_CONFIG", "staging.yaml")
    assert run(command) == 2
    assert capsys.readouterr().err.startswith("error: production.yaml: no such file")


@pytest.mark.parametrize(
    ("command", "needed"),
    [
        (["run", "--repository", "https://git.example/c.git"], "--gitops"),
        (["run", "--branch", "main"], "--gitops"),
        (["run", "--gitops-config", "clusters/*/sectors.yaml"], "--gitops"),
        (["manifest", "--image", "a:1", "--branch", "production"], "--repository"),
        (["manifest", "--image", "a:1", "--mode", "pull-request"], "--repository"),
        (["manifest", "--image", "a:1", "--gitops-config", "a.yaml"], "--repository"),
        (["manifest", "--image", "a:1", "--out", "fleets"], "--repository"),
    ],
)
def test_option_of_a_second_loop_that_does_not_run_is_refused(
    command: list[str], needed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever gives them believes that commits come into force."""
    assert run(command) == 2
    said = capsys.readouterr().err
    assert "is for the second loop, which does not run" in said
    assert f"(add {needed})" in said


def test_variables_of_the_second_loop_are_for_every_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A profile that has them must not keep a dry run from beginning."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RECONCILER_GIT_REPOSITORY", "https://git.example/c.git")
    monkeypatch.setenv("RECONCILER_GIT_BRANCH", "production")
    assert run(["run", "--dry-run"]) == 2
    assert capsys.readouterr().err.startswith("error: sectors.yaml: no such file")
