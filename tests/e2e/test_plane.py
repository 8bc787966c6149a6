"""The control plane's own manners: no process of it outlives who started it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import until

_ROOT = Path(__file__).resolve().parents[2]
_START = """
import sys
from pathlib import Path
from reconciler.sandbox.control_plane.plane import ControlPlane
with ControlPlane(Path(sys.argv[1]), Path(sys.argv[2])) as plane:
    print(*(child.pid for child in plane.processes.values()), flush=True)
    sys.stdin.read()
"""


def _alive(pid: int) -> bool:
    """A zombie that nobody has buried yet is dead."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


@pytest.mark.parametrize("killed", [True, False])
def test_no_component_outlives_its_starter(programs: Path, tmp_path: Path, killed: bool) -> None:
    """Runs that were interrupted would leave control planes behind until memory is out."""
    argv = [sys.executable, "-c", _START, str(programs), str(tmp_path / "plane")]
    path = {"PYTHONPATH": str(_ROOT), "PATH": os.defpath}
    with subprocess.Popen(
        argv, cwd=_ROOT, env=path, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as starter:
        assert starter.stdout is not None
        pids = [int(pid) for pid in starter.stdout.readline().split()]
        assert len(pids) == 5
        assert all(map(_alive, pids))
        if killed:
            starter.kill()
    until("every component is gone", lambda: not any(map(_alive, pids)))
    assert starter.returncode == (-9 if killed else 0)
