"""The program as the first process of a container, to which the kernel gives no default action."""

import os
import signal
import subprocess
import sys
from typing import Any

import pytest

from reconciler.__main__ import main

TERMINATED_WHILE_LOADING = """
import os, signal, sys
class Terminate:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            os.kill(os.getpid(), signal.SIGTERM)
sys.meta_path.insert(0, Terminate())
from reconciler.__main__ import main
sys.argv[1:] = ["--version"]
main()
"""
NAMESPACE = ("unshare", "--pid", "--fork", "--kill-child")


def may_make_a_namespace() -> bool:
    """Whether this user may start a first process."""
    try:
        done = subprocess.run([*NAMESPACE, "true"], capture_output=True, check=False, timeout=60)
    except OSError:
        return False
    return done.returncode == 0


@pytest.mark.parametrize(
    ("around", "expected"),
    [
        pytest.param(
            NAMESPACE,
            143,
            marks=pytest.mark.skipif(not may_make_a_namespace(), reason="takes rights to unshare"),
        ),
        ((), -signal.SIGTERM),
    ],
    ids=["first", "any other"],
)
def test_sigterm_while_the_program_is_loaded_ends_it(
    around: tuple[str, ...], expected: int
) -> None:
    """A pod whose first process lost it went on, and was killed half a minute later."""
    done = subprocess.run(
        [*around, sys.executable, "-c", TERMINATED_WHILE_LOADING],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (expected, "", "")


@pytest.mark.parametrize(
    ("process", "before", "is_set"),
    [(1, signal.SIG_DFL, True), (2, signal.SIG_DFL, False), (1, signal.SIG_IGN, False)],
)
def test_handler_is_for_the_first_process_and_no_ignored_signal(
    process: int, before: Any, is_set: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Elsewhere the signal has its usual effect already."""
    kept = signal.signal(signal.SIGTERM, before)
    try:
        monkeypatch.setattr(os, "getpid", lambda: process)
        monkeypatch.setattr(sys, "argv", ["reconciler", "--version"])
        with pytest.raises(SystemExit):
            main()
        assert (signal.getsignal(signal.SIGTERM) is not before) is is_set
    finally:
        signal.signal(signal.SIGTERM, kept)
