"""No error shows a secret that stands in an address, whoever quotes the address."""

from pathlib import Path

import pytest

from reconciler.cli.main import run

SECRET = "s3cr3tpwXYZ"
CLOSED = "127.0.0.1:1"
CONFIG = "cluster: a\nregions: [us-west-2]\nsectors: {p: {kind: memory, fleets: [{size: small}]}}\n"
USER = f"u:{SECRET}@{CLOSED}"
COMMANDS = {
    "gitops": ("gitops", "--once", "--repository", f"https://{CLOSED}/x?access_token={SECRET}"),
    "gitops private": (
        "gitops", "--once", "--repository", f"https://{CLOSED}/x?private_token={SECRET}",
    ),
    "gitops broken": ("gitops", "--once", "--repository", f"https://u:{SECRET}@[::1/x"),
    "gitops forge": (
        "gitops", "--once", "--repository", "https://h/x", "--forge", "gitlab",
        "--forge-api", f"https://u:{SECRET}@[::1/x",
    ),
    "record": ("record", "--out", "r.jsonl", "--prometheus", f"https://{USER}"),
    "record query": ("record", "--out", "r.jsonl", "--prometheus", f"http://{CLOSED}/?token={SECRET}"),
    "status": ("status", "--status-url", f"http://{USER}"),
    "status broken": ("status", "--status-url", f"u:{SECRET}@h"),
    "simulate": (
        "simulate", "good.yaml", "--demand", "none.jsonl", "--out", "out", "--dask",
        f"tcp://{USER}", "--sweep", "consolidation=true",
    ),
    "plan": ("plan", "--config", f"https://{USER}/sectors.yaml"),
    "usage": ("validate", "--output", f"https://{USER}"),
}  # fmt: skip


@pytest.mark.parametrize("verbosity", [(), ("-vvv",)], ids=["plain", "vvv"])
@pytest.mark.parametrize("command", COMMANDS)
def test_secret_in_an_address_is_in_no_error(
    command: str,
    verbosity: tuple[str, ...],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Errors go into the logs of jobs, which more people read than may know the secret."""
    (tmp_path / "good.yaml").write_text(CONFIG)
    (tmp_path / "none.jsonl").write_text("")
    monkeypatch.chdir(tmp_path)
    assert run([*verbosity, *COMMANDS[command]]) in {1, 2}
    error = capsys.readouterr().err
    assert "error: " in error
    assert SECRET not in error


def test_secret_of_the_environment_is_in_no_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody can see by its look that it is one."""
    monkeypatch.setenv("RECONCILER_GIT_TOKEN", SECRET)
    assert run(["-vvv", "validate", "--bogus", SECRET]) == 2
    assert run(["plan", "--config", str(tmp_path / SECRET)]) == 2
    error = capsys.readouterr().err
    assert "Traceback" in error
    assert SECRET not in error


def test_endpoint_of_aws_is_shown_without_its_password(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The words of botocore quote the address as it was given."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{USER}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    out = str(tmp_path / "out")
    assert run(["sandbox", "interrupt", "x"]) == 1
    assert run(["import", "--out", out, "--cluster-name", "a", "--region", "us-west-2"]) == 1
    error = capsys.readouterr().err
    assert error.count(f"http://***@{CLOSED}") == 2
    assert SECRET not in error


def test_endpoint_that_is_no_address_names_no_sandbox(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python's own words would be reported as a bug of ours."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://u:{SECRET}@[::1")
    assert run(["sandbox", "interrupt", "x"]) == 2
    assert capsys.readouterr().err.startswith("error: AWS_ENDPOINT_URL: names no sandbox on this")


def test_name_of_a_variable_hides_no_message(capsys: pytest.CaptureFixture[str]) -> None:
    """`RECONCILER_GIT_TOKEN: ***` says nothing about what to fix."""
    from reconciler.cli.terminal.messages import tell  # noqa: PLC0415 - of this test alone

    tell("error", "RECONCILER_GIT_TOKEN", "contains a newline", hint="token: see docs")
    assert (
        capsys.readouterr().err
        == "error: RECONCILER_GIT_TOKEN: contains a newline (token: see docs)\n"
    )
