"""Options that contradict each other end a command before it begins."""

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
