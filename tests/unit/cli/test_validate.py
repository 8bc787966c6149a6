"""`reconciler validate` as a user and a pipeline see it."""

import io
import json
import sys
from pathlib import Path

import pytest

from reconciler.cli.main import run
from tests.unit.config.documents import COMPLETE


@pytest.fixture
def config_file(tmp_path: Path) -> Path:
    """A config with two faults."""
    file = tmp_path / "sectors.yaml"
    file.write_text("cluster: a\nbogus: 1\ndefault_sector: nowhere\n")
    return file


def test_clean_config_exits_0_with_no_faults(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The pipeline goes on from here."""
    file = tmp_path / "sectors.yaml"
    file.write_text(COMPLETE)
    assert run(["validate", str(file), "--output", "json"]) == 0
    assert capsys.readouterr().out == '{"faults": []}\n'


def test_faults_are_json_and_exit_2(config_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """CI annotates the lines of the pull request from this."""
    assert run(["validate", str(config_file)]) == 2
    faults = json.loads(capsys.readouterr().out)["faults"]
    keys = {"code", "severity", "path", "line", "column", "message"}
    assert [set(fault) for fault in faults] == [keys] * 2
    assert [(f["code"], f["path"], f["line"], f["column"]) for f in faults] == [
        ("config/unknown-key", "bogus", 2, 1),
        ("default-sector/unknown", "default_sector", 3, 1),
    ]


def test_table_has_a_line_per_fault_with_its_place(
    config_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Editors and terminals jump to file:line:column."""
    assert run(["validate", str(config_file), "--output", "table"]) == 2
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" ")[0] for line in lines] == [f"{config_file}:2:1:", f"{config_file}:3:1:"]
    assert lines[0].split(" ")[1] == "config/unknown-key:"


def test_standard_input_is_read_for_a_dash(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A hook validates what is staged, not what lies in the folder."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"bogus: 1\n")))
    assert run(["validate", "-", "-o", "table"]) == 2
    assert capsys.readouterr().out.startswith("<stdin>:1:1: config/unknown-key: ")


def test_sectors_yaml_is_the_default_file(
    config_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """That is what the file is called in every example."""
    monkeypatch.chdir(config_file.parent)
    assert run(["validate", "-o", "table"]) == 2
    assert capsys.readouterr().out.startswith("sectors.yaml:2:1: ")


@pytest.mark.parametrize("name", ["none.yaml", "."])
def test_file_that_cannot_be_read_is_a_fault_and_exit_2(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Missing and invalid are one thing to a pipeline."""
    assert run(["validate", str(tmp_path / name)]) == 2
    (fault,) = json.loads(capsys.readouterr().out)["faults"]
    assert (fault["code"], fault["line"], fault["column"]) == ("config/syntax", 1, 1)
    assert run(["validate", str(tmp_path / name), "-o", "table"]) == 2
    reason = "no such file" if name == "none.yaml" else "is a directory"
    assert capsys.readouterr().out == f"{tmp_path / name}: {reason}\n"


def test_schema_is_printed_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    """Editors fetch it once and complete from it."""
    assert run(["validate", "--schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert "sectors" in schema["properties"]


def test_cluster_name_option_checks_for_that_cluster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A shared config is validated for each cluster that uses it."""
    file = tmp_path / "c.yaml"
    file.write_text("terraform: {tags: {kubernetes.io/cluster/prod: x}}\n")
    assert run(["validate", str(file)]) == 0
    assert run(["validate", str(file), "--cluster-name", "prod"]) == 2
    assert "tags/reserved" in capsys.readouterr().out


WARNED = (
    "max_hourly_usd: 0.01\nsectors: {a: {kind: cpu, fleets: [{size: large, min_capacity: 9}]}}\n"
)


def test_warning_is_told_and_leaves_the_exit_code_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is legal must not stop a pipeline that did not ask for it."""
    file = tmp_path / "sectors.yaml"
    file.write_text(WARNED)
    assert run(["validate", str(file), "-o", "json"]) == 0
    (fault,) = json.loads(capsys.readouterr().out)["faults"]
    assert (fault["severity"], fault["code"]) == ("warning", "fleet/limit-below-minima")
    assert run(["validate", str(file), "-o", "table"]) == 0
    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{file}:1:1: warning: fleet/limit-below-minima: ")
    assert last == f"{file}: no faults"


def test_warning_fails_the_strict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A team that wants none of them gates on --strict."""
    file = tmp_path / "sectors.yaml"
    file.write_text(WARNED)
    assert run(["validate", "--strict", str(file), "-o", "json"]) == 2
    assert len(json.loads(capsys.readouterr().out)["faults"]) > 1
