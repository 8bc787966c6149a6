"""What the second loop loads before it limits its own memory."""

import subprocess
import sys

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
