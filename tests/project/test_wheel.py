"""The wheel carries everything: its commands run where no source tree is."""

import json
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "docs" / "examples" / "demo" / "sectors.yaml"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`reconciler` of a wheel in an environment of its own.

    The dependencies are those of this environment (their pins are tested by installing them).
    """
    where = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [
            sys.executable,
            "-m",
            "build",
            "--no-isolation",
            "--wheel",
            "--outdir",
            str(where),
            str(ROOT),
        ],
        check=True,
        capture_output=True,
        timeout=120,
    )
    (wheel,) = where.glob("*.whl")
    environment = where / "environment"
    venv.create(environment, with_pip=False, symlinks=True)
    python = environment / "bin" / "python"
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "--python",
            str(python),
            "install",
            "--quiet",
            "--no-deps",
            "--no-index",
            str(wheel),
        ],
        check=True,
        capture_output=True,
        timeout=120,
    )
    (packages,) = environment.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return environment / "bin" / "reconciler"


def run(program: Path, where: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the installed program far from the source tree."""
    clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}  # noqa: TID251 - a child inherits ours
    return subprocess.run(
        [str(program), *arguments],
        cwd=where,
        env=clean,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_installed_help_lists_commands(program: Path, tmp_path: Path) -> None:
    """The first thing that a user types must work."""
    done = run(program, tmp_path, "--help")
    assert done.returncode == 0, done.stderr
    assert "render" in done.stdout


def test_installed_validate_accepts_the_example(program: Path, tmp_path: Path) -> None:
    """Validation needs nothing but the wheel."""
    done = run(program, tmp_path, "validate", str(CONFIG), "--output", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"faults": []}


def test_installed_render_writes_a_whole_root_module(program: Path, tmp_path: Path) -> None:
    """Templates and Terraform modules travel in the wheel."""
    done = run(program, tmp_path, "render", "--config", str(CONFIG), "--out", "out")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "fleets.auto.tfvars.json").is_file()
    for module in ("eks_fleet", "eks_group", "fleets"):
        # Some files of eks_group are links to those of eks_fleet.
        sources = {path.name: path for path in (ROOT / "terraform" / module).glob("*.tf")}
        written = tmp_path / "out" / "modules" / module
        assert sources.keys() == {path.name for path in written.iterdir()}
        assert all((written / n).read_bytes() == s.read_bytes() for n, s in sources.items())


def test_installed_plan_reads_its_catalogue(program: Path, tmp_path: Path) -> None:
    """The instance catalogue travels in the wheel."""
    (tmp_path / "cluster.json").write_text('{"kind": "List", "apiVersion": "v1", "items": []}')
    done = run(program, tmp_path, "plan", "--config", str(CONFIG), "--cluster", "cluster.json")
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    assert [a["policy"] for a in plan["actions"]] == ["min-capacity"]
    assert plan["cost"]["hourly_usd_after"] > 0
