"""Standard output that is closed, full, or of another encoding: the command still ends well."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

CONFIG = "cluster: a\nregions: [us-west-2]\nsectors: {p: {kind: memory, fleets: [{size: small}]}}\n"
ODD = 'cluster: a\nsectors:\n  "\u00fcber": {kind: memory, fleets: [{size: small}]}\n'


def shell(line: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[bytes]:
    """A line of a shell in which `reconciler` is the program."""
    program = f'reconciler() {{ "{sys.executable}" -m reconciler "$@"; }}; '
    return subprocess.run(
        ["/bin/bash", "-c", program + line],
        cwd=folder,
        env={**os.environ, **variables},  # noqa: TID251 - a child inherits ours
        capture_output=True,
        check=False,
        timeout=120,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a config, and one whose names are no ASCII."""
    (tmp_path / "good.yaml").write_text(CONFIG)
    (tmp_path / "odd.yaml").write_text(ODD, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("validate good.yaml", 0),
        ("validate odd.yaml", 2),
        ("--help", 0),
        ("render good.yaml --out out", 0),
        ("validate good.yaml -o table", 0),
    ],
)
def test_closed_output_leaves_the_exit_code(command: str, code: int, folder: Path) -> None:
    """Services are started so, and a render that worked must not look failed."""
    done = shell(f"reconciler {command} >&-", folder)
    assert done.returncode == code
    assert done.stderr == b""


@pytest.mark.parametrize(
    ("command", "code", "unbuffered"),
    [
        ("validate good.yaml", 0, ""),
        ("validate good.yaml -o table", 0, ""),
        ("validate odd.yaml", 2, "1"),
        ("--help", 0, ""),
        ("--version", 0, "1"),
        ("render good.yaml --out out", 0, ""),
    ],
)
def test_reader_that_ended_leaves_the_exit_code(
    command: str, code: int, unbuffered: str, folder: Path
) -> None:
    """`validate | head` in a pipeline with `pipefail` would fail a config that is good."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "reconciler", *command.split()],
            cwd=folder,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},  # noqa: TID251 - a child inherits ours
            stdout=writing,
            stderr=subprocess.PIPE,
            check=False,
            timeout=120,
        )
    finally:
        os.close(writing)
    assert done.returncode == code
    assert done.stderr == b""


@pytest.mark.parametrize("command", ["frobnicate", "plan --cluster missing.json"])
def test_reader_of_both_streams_that_ended_leaves_the_exit_code(command: str, folder: Path) -> None:
    """With `2>&1 | grep -q` wrong usage looked like a failure."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "reconciler", *command.split()],
            cwd=folder,
            stdout=writing,
            stderr=writing,
            check=False,
            timeout=120,
        )
    finally:
        os.close(writing)
    assert done.returncode == 2


def test_watch_ends_when_its_reader_has(tmp_path: Path) -> None:
    """It would ask for ever, and show it to nobody."""
    code = """
from reconciler.cli.status import watched
from reconciler.cli.terminal import streams
from reconciler.cli.terminal.output import Output
streams.prepare()
watched(lambda: {"a": 1}, Output.JSON, interval_seconds=0.0)
"""
    (tmp_path / "watch.py").write_text(code)
    done = shell(f'{sys.executable} watch.py | head -n 1; exit "${{PIPESTATUS[0]}}"', tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout) == {"a": 1}


def test_closed_input_and_error_are_no_crash(folder: Path) -> None:
    """The first file that is opened would take their place."""
    done = shell("reconciler validate - -o json <&- 2>&-", folder)
    assert done.returncode == 2
    assert json.loads(done.stdout)["faults"][0]["message"] == "the file is empty"


def test_programs_that_are_started_get_a_stream_in_the_place_of_a_closed_one(
    tmp_path: Path,
) -> None:
    """The process of the second loop logs to it."""
    child = "import sys; sys.exit(sys.stderr is None or sys.stdin is None)"
    code = f"""
import subprocess, sys
from reconciler.cli.terminal import streams
streams.prepare()
sys.exit(subprocess.run([sys.executable, "-c", {child!r}], check=False).returncode)
"""
    (tmp_path / "parent.py").write_text(code)
    done = shell(f"{sys.executable} parent.py <&- 2>&-", tmp_path)
    assert done.returncode == 0


@pytest.mark.parametrize("command", ["validate good.yaml", "validate --schema", "--help"])
def test_full_disk_is_reported_as_such(command: str, folder: Path) -> None:
    """A result that was not written must not look like one."""
    done = shell(f"reconciler {command} >/dev/full", folder)
    assert done.returncode == 1
    assert done.stderr == b"error: standard output: no space left on device\n"


@pytest.mark.parametrize(
    ("command", "code"), [("manifest good.yaml --image a:1", 0), ("validate odd.yaml -o json", 2)]
)
def test_warning_that_cannot_be_written_leaves_the_result(
    command: str, code: int, folder: Path
) -> None:
    """`manifest > install.yaml 2>> log` wrote nothing when the disk of the log was full."""
    done = shell(f"reconciler {command} 2>/dev/full", folder)
    assert done.returncode == code
    assert done.stdout == shell(f"reconciler {command}", folder).stdout
    assert done.stdout


@pytest.mark.parametrize("form", ["table", "json", "yaml"])
def test_what_the_encoding_lacks_is_escaped(form: str, folder: Path) -> None:
    """The faults are what was asked for."""
    done = shell(f"reconciler validate odd.yaml -o {form}", folder, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (2, b"")
    assert b"ber" in done.stdout
    if form == "json":
        assert "'\u00fcber'" in json.loads(done.stdout)["faults"][0]["message"]
    assert done.stdout.isascii()


def test_manifest_is_utf_8_whatever_the_terminal_shows(folder: Path) -> None:
    """Its ConfigMap must hold the config as it is, not with escapes of ours."""
    (folder / "good.yaml").write_text(f"# \u20ac\n{CONFIG}", encoding="utf-8")
    line = "reconciler manifest good.yaml --image a:1 --identity none"
    done = shell(line, folder, PYTHONIOENCODING="ascii")
    assert done.stdout == shell(line, folder, PYTHONIOENCODING="utf-8").stdout
    assert done.returncode == 0
