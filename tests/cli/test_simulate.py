"""`reconciler simulate` from files to a report, whose worst moments `reconciler plan` opens."""

import json
from pathlib import Path

import pytest

from reconciler.cli.main import run

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


def test_report_is_written_and_its_worst_moment_explained(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """From a trace to the reason why a pod waited, with files alone."""
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


def test_two_configs_are_put_side_by_side(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The question before every change of the config."""
    other = files / "other.yaml"
    other.write_text(CONFIG.replace("    - {size: small}\n", ""))
    assert simulate(files, "report", "--config-b", str(other), "-o", "table") == 0
    printed = capsys.readouterr().out
    assert "USD per day" in printed
    assert "other.yaml" in printed
    assert "What changes" in (files / "report" / "report.html").read_text()


def test_models_of_other_autoscalers_are_shown_beside_and_named_as_models(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever reads a figure must not take it for one of the program itself."""
    peers = ["--peer", "cluster-autoscaler", "--peer", "karpenter,consolidate-after=1m"]
    assert simulate(files, "report", *peers, "-o", "table") == 0
    assert "a model of that program" in capsys.readouterr().out
    found = json.loads((files / "report" / "report.json").read_text())
    assert [each["config"] for each in found["peers"]] == [
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
    ("change", "demand", "said"),
    [
        ("", "absent.csv", "no such file"),
        ("sectors:", "trace.csv", "config"),
        (
            "fleets: [{size: small, provider: asg, auto_scaling_group: x}]",
            "trace.csv",
            "Auto Scaling group",
        ),
    ],
)
def test_fault_is_one_line_that_says_what_to_do(
    files: Path, change: str, demand: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Never a traceback."""
    if change.startswith("fleets"):
        head = CONFIG[: CONFIG.index("    fleets:")]
        (files / "sectors.yaml").write_text(f"{head}    {change}\n")
    elif change:
        (files / "sectors.yaml").write_text("cluster: x\n")
    assert simulate(files, "report", demand=demand) != 0
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error


def test_selector_without_a_value_is_refused(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A mistyped selector would put every pod nowhere."""
    assert simulate(files, "report", "--trace-selector", "sector") == 2
    assert "LABEL=VALUE" in capsys.readouterr().err
