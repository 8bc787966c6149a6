"""`reconciler simulate` from files to a report, whose worst moments `reconciler plan` opens."""

import html
import io
import json
import os
import re
import resource
import shlex
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from typing_extensions import override

from reconciler.cli.main import run
from reconciler.cli.terminal import progress_line
from reconciler.model.demand import PodDemand
from reconciler.records.demand import encode_line
from tests.builders import NOW, make_spec

CONFIG = """
cluster: sim
regions: [us-east-1]
default_sector: ci
sectors:
  ci:
    kind: cpu
    fleets:
    - {size: small}
    - {size: large, spot: false}
"""
TRACE = "submit_s,duration,cpu,memory\n" + "\n".join(f"{n * 30},300,2,2048" for n in range(20))


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A config and a trace."""
    (tmp_path / "sectors.yaml").write_text(CONFIG)
    (tmp_path / "trace.csv").write_text(TRACE)
    return tmp_path


def simulate(files: Path, out: str, *more: str, demand: str = "trace.csv") -> int:
    """Run the command."""
    words = ["--config", f"{files}/sectors.yaml", "--demand", f"{files}/{demand}"]
    return run(["simulate", *words, "--out", f"{files}/{out}", *more])


@pytest.mark.parametrize(
    "small", ["size: small", "size: small, provider: asg, auto_scaling_group: a"]
)
def test_report_is_written_and_its_worst_moment_explained(
    files: Path, capsys: pytest.CaptureFixture[str], small: str
) -> None:
    """From a trace to the reason why a pod waited, with files alone."""
    (files / "sectors.yaml").write_text(CONFIG.replace("size: small", small))
    assert simulate(files, "report", "--speed-report", "-o", "json") == 0
    printed = capsys.readouterr()
    assert "20 pods," in printed.err
    found = json.loads(printed.out)
    assert json.loads((files / "report" / "report.json").read_text()) == found
    assert "Nodes by fleet" in (files / "report" / "report.html").read_text()
    moment = found["runs"][0]["moments"][0]
    snapshot = files / "report" / moment["snapshot"]
    words = [
        *("plan", "--config", f"{files}/sectors.yaml", "--cluster", f"{snapshot}/cluster.json"),
        *("--aws", *map(str, sorted(snapshot.glob("aws-*.json")))),
        *("--now", moment["at"], "--explain", moment["pod"], "-o", "json"),
    ]
    assert run(words) == 0
    (answer,) = json.loads(capsys.readouterr().out)["explanations"]["pods"]
    assert f"{answer['namespace']}/{answer['pod']}" == moment["pod"]


def test_command_on_the_page_opens_the_moment_as_it_is_shown(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names of files and pods may hold anything, and what overrides the config counts there too."""
    (files / "my configs").mkdir()
    (files / "sectors.yaml").rename(files / "my configs" / "a&b.yaml")
    pod = PodDemand(at=NOW, id="$(touch pwned)", spec=make_spec("900", "1Gi"), namespace="ci")
    (files / "demand.jsonl").write_bytes(encode_line(pod))
    monkeypatch.chdir(files)
    words = ["--config", "my configs/a&b.yaml", "--demand", "demand.jsonl", "--days", "0.1"]
    told = ["--cluster-name", "another", "--regions", "us-west-2"]
    assert run(["simulate", *words, *told, "--out", "my report"]) == 0
    page = Path("my report/report.html").read_text()
    shown = html.unescape(re.findall("<code>(reconciler plan.*)</code>", page)[0])
    assert "--cluster-name another --regions us-west-2" in shown
    program = shlex.join([sys.executable, "-m", "reconciler"])
    command = shown.replace("reconciler", program, 1) + " -o json"
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, check=True)
    answer = json.loads(done.stdout)
    assert answer["explanations"]["pods"][0]["pod"] == "$(touch pwned)"
    assert {fleet["region"] for fleet in answer["fleets"]} == {"us-west-2"}
    assert not Path("pwned").exists()


def test_report_that_cannot_be_written_leaves_the_one_before_whole(
    files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk tore report.json, beside a page of another simulation."""
    assert simulate(files, "report") == 0
    before = (files / "report" / "report.json").read_bytes()
    (files / "report" / "moments" / "b-1").mkdir()
    (files / "report" / "moments" / "b-1" / "cluster.json").write_text("{}")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # it would be cut off, and kept
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16_384, limit[1]))
    try:
        assert simulate(files, "report", "--days", "0.1") == 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert "cannot be written" in capsys.readouterr().err
    assert (files / "report" / "report.json").read_bytes() == before
    assert simulate(files, "report") == 0
    assert not (files / "report" / "moments" / "b-1" / "cluster.json").exists()


def test_sweep_shows_on_a_terminal_that_it_works_before_its_first_point_is_done(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A point may take minutes, and the start of a Dask cluster some seconds."""

    class Terminal(io.StringIO):
        @override
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress_line, "QUIET_SECONDS", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    assert simulate(files, "report", "--sweep", "consolidation=true,false", "--workers", "0") == 0
    first, *_ = stream.getvalue().split("\r\x1b[K1/2 consolidation=true: ")
    assert "\r\x1b[Ksimulating the points of the sweep (" in first
    assert "2/2" not in first


@pytest.mark.parametrize("more", [[], ["--sweep", "consolidation=true,false", "--workers", "0"]])
def test_directory_that_cannot_be_written_is_reported_before_anything_is_played(
    files: Path, more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Not after the hours that it took."""
    assert simulate(files, "sectors.yaml/x", *more) == 1
    assert "name another with --out" in (said := capsys.readouterr().err)
    assert "1/2" not in said
    words = ["--config", f"{files}/sectors.yaml", "--demand", f"{files}/trace.csv"]
    assert run(["simulate", *words, "--out", "", *more]) == 2
    assert "--out: is empty" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "is_folder", "said"),
    [
        ("moments", False, "moments: Not a directory"),
        ("moments/a-1", False, "a-1: Not a directory"),
        ("report.json", True, "report.json: Is a directory"),
        ("moments/a-1/cluster.json", True, "cluster.json: Is a directory"),
    ],
)
def test_what_is_in_the_way_of_the_report_is_reported_before_anything_is_played(
    files: Path, name: str, is_folder: bool, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """That the directory takes files says nothing of those that are there already."""
    path = files / "report" / name
    path.parent.mkdir(parents=True)
    if is_folder:
        path.mkdir()
    else:
        path.touch()
    (files / "empty.jsonl").write_text("")  # is refused when it is to be played
    assert simulate(files, "report", demand="empty.jsonl") == 1
    assert f"{said} (name another with --out)" in capsys.readouterr().err


def test_two_configs_are_put_side_by_side(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The question before every change of the config."""
    other = files / "other.yaml"
    other.write_text(CONFIG.replace("    - {size: small}\n", ""))
    assert simulate(files, "report", "--config-b", str(other), "-o", "table") == 0
    printed = capsys.readouterr().out
    assert "USD per day" in printed
    assert "other.yaml" in printed
    assert "What changes" in (files / "report" / "report.html").read_text()


def test_what_makes_figures_worth_little_is_said_beside_them(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A second of no pods cost 0.00 USD per day, and a guessed price was a catalogue's."""
    line = {"t": "2026-03-01T12:00:00Z", "kind": "fleet", "fleet": "ci-small", "target": 1}
    (files / "steady.jsonl").write_text(json.dumps(line))
    other = files / "other.yaml"
    odd = "sizes: {odd: {kind: cpu, cpu: 4, memory: 16Gi, instance_types: [m99.xlarge]}}"
    other.write_text(f"{odd}{CONFIG.replace('{size: small}', '{size: odd}')}")
    more = ["--config-b", str(other)]
    assert simulate(files, "report", *more, "-o", "table", demand="steady.jsonl") == 0
    said = capsys.readouterr().out
    page = (files / "report" / "report.html").read_text()
    assert "other.yaml: no price known for m99.xlarge: counted at a usual price" in said
    assert "note: the demand asks for no pod in this time" in said
    for note in ("no price known for m99.xlarge", "the demand spans 1 s only", "asks for no pod"):
        assert note in said
        assert note in page


def test_what_the_demand_names_and_nobody_has_is_counted_and_reported(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A demand whose first day was cut off simulated nothing, and said nothing of it."""
    at = {"t": "2026-03-01T12:00:00Z"}
    owner = {"kind": "Deployment", "name": "api"}
    lines = [
        {**at, "kind": "controller", "controller": owner, "replicas": 14},
        {**at, "kind": "fault", "fault": "capacity", "fleet": "ci-smal"},
        {**at, "kind": "fault", "fault": "interruption", "instance_type": "m99.xlarge"},
        {**at, "kind": "fault", "fault": "slow-launch", "fleet": "ci-small", "seconds": 5},
    ]
    (files / "cut.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert simulate(files, "report", "--days", "0.01", "-o", "table", demand="cut.jsonl") == 0
    said = capsys.readouterr().out
    page = (files / "report" / "report.html").read_text()
    for note in ("1 controller of the demand without a pod", "2 faults of the demand without"):
        assert note in said
        assert note in page
    (found,) = json.loads((files / "report" / "report.json").read_text())["runs"]
    assert found["not_played"] == {"controllers_without_spec": 1, "faults_of_nothing": 2}


def test_configs_of_one_name_are_distinguished_by_their_folders(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both columns of the table were headed by the same name."""
    for folder in ("old", "new"):
        (files / folder).mkdir()
        (files / folder / "sectors.yaml").write_text(CONFIG)
    words = ["--config", f"{files}/old/sectors.yaml", "--config-b", f"{files}/new/sectors.yaml"]
    words += ["--demand", f"{files}/trace.csv", "--out", f"{files}/report", "-o", "table"]
    assert run(["simulate", *words]) == 0
    printed = capsys.readouterr().out
    assert "old/sectors.yaml" in printed
    assert "new/sectors.yaml" in printed


def test_standard_input_is_one_config_only(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The second one was reported as an empty file."""
    words = ["--config", "-", "--config-b", "-", "--demand", f"{files}/trace.csv"]
    assert run(["simulate", *words, "--out", f"{files}/report"]) == 2
    assert "--config-b: standard input can be read once" in capsys.readouterr().err


def has_children(process: int) -> bool:
    """Whether a process has begun another one."""
    found = False
    for children in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):  # of a thread that has ended meanwhile
            found |= bool(children.read_text())
    return found


def test_sweep_that_is_interrupted_while_its_processes_start_ends_without_a_word(
    files: Path,
) -> None:
    """Dask could not close what had not started, and printed its tracebacks."""
    words = ["--config", f"{files}/sectors.yaml", "--demand", f"{files}/trace.csv"]
    words += ["--sweep", "consolidation=true,false", "--workers", "2", "--out", f"{files}/report"]
    program = [sys.executable, "-m", "reconciler", "simulate", *words]
    with subprocess.Popen(program, stderr=subprocess.PIPE, text=True) as running:
        while not has_children(running.pid):
            with suppress(subprocess.TimeoutExpired):
                pytest.fail(f"it ended before: {running.wait(0.05)}")
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=120)
    assert (running.returncode, said) == (130, "")


def test_models_of_other_autoscalers_are_shown_beside_and_named_as_models(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever reads a figure must not take it for one of the program itself."""
    peers = ["--peer", "cluster-autoscaler", "--peer", "karpenter,consolidate-after=1m"]
    assert simulate(files, "report", *peers, "-o", "table") == 0
    assert "a model of that program" in capsys.readouterr().out
    found = json.loads((files / "report" / "report.json").read_text())
    assert [peer["config"] for peer in found["peers"]] == [
        "Cluster Autoscaler 1.36 (model)",
        "Karpenter 1.14 (model)",
    ]
    assert [each["pods"] for each in (*found["runs"], *found["peers"])] == [20, 20, 20]
    page = (files / "report" / "report.html").read_text()
    assert "Models, not the programs themselves" in page
    assert "Left out" in page


def test_generated_mix_is_demand(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A mix with a fault says where; one without is played."""
    mix = "days: 0.02\njobs:\n- {name: a, per_hour: 60, cpu: 1, memory: 1Gi, duration: 1m}\n"
    (files / "mix.yaml").write_text(mix)
    assert simulate(files, "report", "-o", "json", demand="mix.yaml") == 0
    assert json.loads(capsys.readouterr().out)["runs"][0]["pods"] > 5
    (files / "mix.yaml").write_text(mix.replace("per_hour", "per_week"))
    assert simulate(files, "report", demand="mix.yaml") != 0
    assert "mix.yaml:3:" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("config", "demand", "said"),
    [
        (CONFIG, "absent.csv", "no such file"),
        ("cluster: x\n", "trace.csv", "the config names no fleet"),
    ],
)
def test_fault_is_one_line_that_says_what_to_do(
    files: Path, config: str, demand: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Never a traceback."""
    (files / "sectors.yaml").write_text(config)
    assert simulate(files, "report", demand=demand) != 0
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error


def test_names_of_files_may_hold_anything(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Names that are no UTF-8 or look like a formula ended as an unexpected error."""
    name = os.fsdecode(b"a$_$\xff\x07.yaml")
    (files / name).write_text(CONFIG)
    (files / os.fsdecode(b"bad\xff.csv")).write_text(TRACE)
    words = ["--config-b", f"{files}/{name}", "--peer", "karpenter", "-o", "table"]
    out = os.fsdecode(b"out\xff")
    assert simulate(files, out, *words, demand=os.fsdecode(b"bad\xff.csv")) == 0
    assert "Traceback" not in capsys.readouterr().err
    page = (files / out / "report.html").read_text()
    assert "a$_$" in page
    words = ["--sweep", "consolidation=true,false", "--workers", "0"]
    assert simulate(files, out, *words, demand=os.fsdecode(b"bad\xff.csv")) == 0


def test_demand_that_cannot_be_played_is_named(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of several files a person needs the one."""
    (files / "empty.jsonl").write_text("")
    assert simulate(files, "report", demand="empty.jsonl") == 1
    assert f"{files}/empty.jsonl: it is empty" in capsys.readouterr().err
    assert not (files / "report").exists()
    (files / "kept").mkdir()
    assert simulate(files, "kept/a/b", demand="empty.jsonl") == 1
    assert list((files / "kept").iterdir()) == []


def test_fault_of_a_mix_does_not_send_to_the_check_of_configs(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`reconciler validate` knows nothing of mixes."""
    (files / "mix.yaml").write_text("days: x\n")
    assert simulate(files, "report", demand="mix.yaml") == 2
    said = capsys.readouterr().err
    assert "mix.yaml:1:1" in said
    assert "validate" not in said


def test_selector_without_a_value_is_refused(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A mistyped selector would put every pod nowhere."""
    assert simulate(files, "report", "--trace-selector", "sector") == 2
    assert "LABEL=VALUE" in capsys.readouterr().err


def test_selector_of_traces_is_refused_for_other_demand(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was passed over, and the pods went to the default sector."""
    (files / "mix.yaml").write_text("days: 0.01\n")
    assert simulate(files, "report", "--trace-selector", "sector=ci", demand="mix.yaml") == 2
    assert "--trace-selector: is only for CSV traces" in capsys.readouterr().err


def test_config_whose_name_begins_with_an_underscore_is_in_the_legends(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plots of two configs had a legend for one of them."""
    monkeypatch.chdir(files)
    Path("_b.yaml").write_text(CONFIG)
    words = ["--config-b", "_b.yaml", "--demand", "trace.csv", "--days", "0.01", "--out", "report"]
    assert run(["simulate", "--config", "sectors.yaml", *words]) == 0
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", Path("report/report.html").read_text())
    names = [text.strip() for text in texts]
    assert names.count("_b.yaml") == names.count("sectors.yaml") == 2
