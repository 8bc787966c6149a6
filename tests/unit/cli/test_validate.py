"""`reconciler validate` as a user and a pipeline see it."""

import io
import json
import os
import sys
import threading
from pathlib import Path

import pytest
import yaml

from reconciler.cli.main import run
from reconciler.config.catalogue import load_catalogue, render_catalogue
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


@pytest.mark.parametrize("output", ["json", "yaml", "table"])
def test_secret_in_a_config_is_in_no_fault(
    tmp_path: Path, output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A token in the wrong place would stand in the log of every pipeline."""
    hook = "https://hooks.slack.com/services/T000/B000/SECRETabcdef123456"
    token = "ghp_SECRETghijklmnopqrstuvwxyz0123456789"
    file = tmp_path / "sectors.yaml"
    file.write_text(
        f"cluster: a\nlisten: {hook}\ndefault_sector: {token}\nsectors: {{{token}: {{}}}}\n"
    )
    assert run(["validate", str(file), "--output", output]) == 2
    printed = capsys.readouterr().out
    assert "SECRET" not in printed
    assert "***" in printed


def test_catalogue_beside_the_config_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was looked for in the working directory, and every type of it was unknown."""
    (tmp_path / "prices.json").write_text(render_catalogue(load_catalogue()))
    file = tmp_path / "sectors.yaml"
    file.write_text(COMPLETE + "catalogue: prices.json\n")
    assert run(["validate", str(file), "--output", "json"]) == 0
    assert capsys.readouterr().out == '{"faults": []}\n'


def test_faults_are_json_and_exit_2(config_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """CI annotates the lines of the pull request from this."""
    assert run(["validate", str(config_file)]) == 2
    faults = json.loads(capsys.readouterr().out)["faults"]
    keys = {"file", "code", "severity", "path", "line", "column", "message"}
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
    reason = {
        "none.yaml": "no such file",
        ".": "is a directory with no sectors.yaml in it or below; name the file",
    }[name]
    assert capsys.readouterr().out == f"{tmp_path / name}: {reason}\n"


@pytest.fixture
def clusters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with three clusters, of which the last two have faults."""
    for name, text in (("a", COMPLETE), ("b", "bogus: 1\n"), ("c/prod", "default_sector: x\n")):
        folder = tmp_path / "clusters" / name
        folder.mkdir(parents=True)
        (folder / "sectors.yaml").write_text(text)
        (folder / "policy.yaml").write_text("kind: DeschedulerPolicy\n")
    hidden = tmp_path / "clusters" / ".terraform"
    hidden.mkdir()
    (hidden / "sectors.yaml").write_text("hidden: 1\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("clusters")
def test_several_files_are_checked_in_one_call_and_each_problem_names_its_file(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A pre-commit hook is given every file that changed, and its output is no terminal."""
    names = [f"clusters/{each}/sectors.yaml" for each in ("b", "a", "c/prod")]
    assert run(["validate", *names]) == 2
    faults = json.loads(capsys.readouterr().out)["faults"]
    assert [(fault["file"], fault["code"]) for fault in faults] == [
        (names[0], "config/unknown-key"),
        (names[2], "default-sector/unknown"),
    ]
    assert run(["validate", *names, "-o", "table"]) == 2
    places = [line.split(": ")[0] for line in capsys.readouterr().out.splitlines()]
    assert places == [f"{names[0]}:1:1", names[1], f"{names[2]}:1:1"]


@pytest.mark.usefixtures("clusters")
def test_directory_stands_for_every_sectors_yaml_in_it(capsys: pytest.CaptureFixture[str]) -> None:
    """A pipeline checks all clusters of a repository; other files there are not sector configs."""
    assert run(["validate", "clusters/", "./clusters/b/sectors.yaml", "-o", "table"]) == 2
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(": ")[0] for line in lines] == [
        "clusters/a/sectors.yaml",
        "clusters/b/sectors.yaml:1:1",
        "clusters/c/prod/sectors.yaml:1:1",
    ]


@pytest.mark.usefixtures("clusters")
def test_several_clean_files_exit_0_with_no_faults(capsys: pytest.CaptureFixture[str]) -> None:
    """The same answer as for one."""
    Path("other.yaml").write_text(COMPLETE)
    assert run(["validate", "clusters/a", "other.yaml", "-o", "json"]) == 0
    assert capsys.readouterr().out == '{"faults": []}\n'


@pytest.mark.usefixtures("clusters")
def test_missing_file_among_several_leaves_the_others_checked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Every fault in one go, also when a name is mistyped."""
    assert run(["validate", "none.yaml", "clusters/b", "-o", "table"]) == 2
    first, second = capsys.readouterr().out.splitlines()
    assert first == "none.yaml: no such file"
    assert second.startswith("clusters/b/sectors.yaml:1:1: ")


@pytest.mark.usefixtures("clusters")
def test_warning_in_one_of_several_fails_the_strict_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As for one file."""
    Path("warned.yaml").write_text(WARNED)
    names = ["clusters/a/sectors.yaml", "warned.yaml"]
    assert run(["validate", *names, "-o", "json"]) == 0
    (fault,) = json.loads(capsys.readouterr().out)["faults"]
    assert (fault["file"], fault["severity"]) == ("warned.yaml", "warning")
    assert run(["validate", "--strict", *names]) == 2


def test_option_and_arguments_that_differ_are_wrong_usage(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Neither of two answers is right."""
    assert run(["validate", "--config", "a.yaml", "b.yaml", "c.yaml"]) == 2
    told = "error: --config: names a.yaml, and the argument b.yaml c.yaml (give one of them)\n"
    assert capsys.readouterr().err == told


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


def test_warning_is_reported_and_leaves_the_exit_code_alone(
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
    assert last == f"{file}: no faults, 1 warning"


def test_warning_fails_the_strict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A team that wants none of them gates on --strict."""
    file = tmp_path / "sectors.yaml"
    file.write_text(WARNED)
    assert run(["validate", "--strict", str(file), "-o", "json"]) == 2
    assert len(json.loads(capsys.readouterr().out)["faults"]) > 1


def test_folder_with_a_newline_in_its_name_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A pull request could write annotations into the pipeline of others."""
    folder = tmp_path / "e\n::error file=a.py::forged\nx"
    folder.mkdir()
    (folder / "sectors.yaml").write_text("- a\n")
    assert run(["validate", str(tmp_path), "-o", "table"]) == 2
    (line,) = capsys.readouterr().out.splitlines()
    assert "e\\n::error file=a.py::forged\\nx/sectors.yaml:1:1: config/syntax: " in line


@pytest.mark.parametrize("form", ["json", "yaml", "table"])
def test_file_name_that_is_no_utf_8_is_shown_by_its_bytes(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes], form: str
) -> None:
    """Half a character is in no JSON: who reads it would fail on the whole answer."""
    file = os.fsencode(tmp_path) + b"/\xff.yaml"
    Path(os.fsdecode(file)).write_text("x")
    assert run(["validate", os.fsdecode(file), "-o", form]) == 2
    out = capsysbinary.readouterr().out.decode()
    shown = (
        out.partition(":1:1: ")[0] if form == "table" else yaml.safe_load(out)["faults"][0]["file"]
    )
    assert shown == f"{tmp_path}/\\xff.yaml"


def test_pipe_is_read_when_it_is_named_and_not_when_it_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`validate <(render-config)` is meant so; one that lies in a folder would hang the command."""
    pipe = tmp_path / "sectors.yaml"
    os.mkfifo(pipe)
    assert run(["validate", str(tmp_path), "-o", "table"]) == 2
    assert capsys.readouterr().out == f"{pipe}: is not a plain file; name it to read it\n"
    writer = threading.Thread(target=pipe.write_text, args=(COMPLETE,))
    writer.start()
    assert run(["validate", str(pipe), "-o", "table"]) == 0
    writer.join()
    assert capsys.readouterr().out == f"{pipe}: no faults\n"
