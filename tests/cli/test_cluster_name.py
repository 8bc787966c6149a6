"""`--cluster-name` is a name in every command that takes one, and so is its variable."""

import json
from pathlib import Path

import pytest

from reconciler.cli.main import run
from tests.git_remote import make_remote

CONFIG = "regions: [us-west-2]\nsectors: {p: {kind: memory, fleets: [{size: small}]}}\n"
COMMANDS = {
    "validate": ("validate", "sectors.yaml"),
    "render": ("render", "sectors.yaml", "--out", "out"),
    "plan": ("plan", "sectors.yaml", "--cluster", "cluster.json"),
    "manifest": ("manifest", "sectors.yaml", "--image", "a:1", "--identity", "none"),
    "import": ("import", "--out", "out"),
    "gitops": ("gitops", "--once", "--repository", "remote.git"),
    "run": ("run", "--gitops", "--repository", "remote.git", "--listen", "127.0.0.1:0"),
    "explain": ("explain", "pod", "a/b", "--cluster", "cluster.json"),
}
OF_THE_VARIABLE = ("validate", "render", "plan", "manifest")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a config that names no cluster, also as a repository."""
    (tmp_path / "sectors.yaml").write_text(CONFIG)
    (tmp_path / "cluster.json").write_text('{"kind": "List", "apiVersion": "v1", "items": []}')
    make_remote(tmp_path, {"sectors.yaml": CONFIG})
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["../x y", "ab c", "a\nb", "a" * 101, ""])
@pytest.mark.parametrize("command", COMMANDS)
def test_name_that_is_none_is_refused_by_every_command(
    command: str, name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It becomes a tag, a label and part of names in EC2; Terraform would refuse it, later."""
    assert run([*COMMANDS[command], "--cluster-name", name]) == 2
    assert capsys.readouterr().err.startswith("error: --cluster-name: '")
    assert not (folder / "out").exists()


@pytest.mark.parametrize("command", OF_THE_VARIABLE)
def test_variable_that_is_no_name_is_refused(
    command: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names where the name comes from."""
    monkeypatch.setenv("RECONCILER_CLUSTER_NAME", "../x y")
    assert run([*COMMANDS[command]]) == 2
    assert capsys.readouterr().err.startswith(
        "error: RECONCILER_CLUSTER_NAME: '../x y' is not a valid label"
    )
    assert not (folder / "out").exists()


def test_variable_names_the_cluster_and_the_flag_beats_it(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is validated is what would be rendered and run."""
    monkeypatch.setenv("RECONCILER_CLUSTER_NAME", "told")
    reserved = "terraform: {tags: {kubernetes.io/cluster/told: owned}}\n"
    (folder / "sectors.yaml").write_text(CONFIG + reserved)
    assert run(["validate", "sectors.yaml", "-o", "json"]) == 2
    faults = json.loads(capsys.readouterr().out)["faults"]
    assert "tags/reserved" in [fault["code"] for fault in faults]
    run(["validate", "sectors.yaml", "-o", "json", "--cluster-name", "other"])
    faults = json.loads(capsys.readouterr().out)["faults"]
    assert "tags/reserved" not in [fault["code"] for fault in faults]
