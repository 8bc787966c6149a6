"""Plans do not depend on how Python happens to order sets in this process."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CLUSTERS = 60


def test_plans_are_the_same_to_the_byte_under_any_hash_seed() -> None:
    """A restarted leader would plan differently from the one before it."""
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.properties.corpus", str(CLUSTERS)],
            cwd=ROOT,
            env={"PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
        )
        for seed in ("1", "4711")
    ]
    outputs = [process.communicate(timeout=120)[0] for process in running]
    assert [process.returncode for process in running] == [0, 0]
    assert outputs[0].count(b"\n") >= CLUSTERS
    assert outputs[0] == outputs[1]
