"""Runs a program that ends with the process that started it: `child.py PARENT PROGRAM ARG...`.

A file of its own, run by path: it becomes the program through exec, which keeps the kernel's signal
at the parent's end.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
"""Linux prctl(2)."""


def main() -> None:
    """Request the signal, and end if the parent is gone already."""
    parent, program, *arguments = sys.argv[1:]
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() == int(parent):
        os.execv(program, [program, *arguments])  # noqa: S606 - that is all this file does


if __name__ == "__main__":
    main()
