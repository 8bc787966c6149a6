"""What the second loop loads before it limits its own memory, and what it says of its turns."""

import subprocess
import sys

import pytest

from reconciler.bootstrap.second_loop.child import turn_of
from reconciler.gitops.rendering.targets import RenderTarget
from reconciler.gitops.repository.status import (
    ClusterProgress,
    ClusterState,
    ClusterStatus,
    GitopsReport,
)
from reconciler.model.errors import Forbidden
from reconciler.ports.repository import Commit, CommitId

PROGRESS = ClusterProgress(config="sectors.yaml", cluster="a", stage="configured")
LIST_HEAVY_MODULES = """
import sys
import reconciler.bootstrap.second_loop.child
sys.exit(" ".join({"boto3", "numpy"} & set(sys.modules)))
"""


def test_process_of_the_second_loop_loads_no_library_that_starts_a_thread_per_core() -> None:
    """On a machine with many cores numpy's threads alone take more than its address space."""
    loaded = subprocess.run(
        [sys.executable, "-c", LIST_HEAVY_MODULES],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert loaded.stderr.strip() == ""


def test_turn_that_failed_is_reported_as_such() -> None:
    """Nobody can tell it from a turn of a standby by its missing progress."""
    turn = turn_of(Forbidden("https://git.example.com/infra.git", "401 Unauthorized"))
    assert turn.failed
    assert turn.text == "failed: https://git.example.com/infra.git: 401 Unauthorized"


@pytest.mark.parametrize(
    ("state", "failed", "text"),
    [
        ("unchanged", False, "at cccccccccccc: sectors.yaml: unchanged"),
        ("invalid", False, "at cccccccccccc: sectors.yaml: invalid"),
        ("refused", True, "at cccccccccccc: sectors.yaml: refused: a rule of the branch"),
    ],
)
def test_turn_whose_push_is_refused_has_failed(
    state: ClusterState,
    failed: bool,
    text: str,
) -> None:
    """Nothing is rendered any more; a config with faults is reported to those who wrote it."""
    target = RenderTarget(config_path="sectors.yaml", output_dir="fleets")
    status = ClusterStatus(target=target, state=state, detail="a rule of the branch")
    tip = Commit(id=CommitId("c" * 40), subject="First")
    turn = turn_of(GitopsReport(tip=tip, clusters=(status,), progress=(PROGRESS,)))
    assert (turn.failed, turn.text, turn.progress) == (failed, text, (PROGRESS,))
