"""`python -m reconciler.sandbox.aws`: AWS on loopback as a process of its own.

Prints one line of JSON, {"url": ...}, when it serves; ends with its parent, on SIGTERM or SIGINT.
"""

import argparse
import ctypes
import json
import os
import signal
import sys
from dataclasses import fields

from reconciler.model.errors import ReconcilerError
from reconciler.sandbox.aws.server import AwsServer
from reconciler.sandbox.aws.values import Delays

_PR_SET_PDEATHSIG = 1
"""Source: linux/prctl.h."""
_ENDING = {signal.SIGTERM, signal.SIGINT}


def main(arguments: list[str] | None = None) -> int:
    """Serve until told to end; returns the exit code."""
    options = _parser().parse_args(arguments)
    delays = Delays(**{f.name: getattr(options, f.name) for f in fields(Delays)})
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    if not _end_with_parent(options.parent_pid):
        return 0
    try:
        with AwsServer(port=options.port, delays=delays) as server:
            sys.stdout.write(json.dumps({"url": server.url}) + "\n")
            sys.stdout.flush()
            signal.sigwait(_ENDING)
    except ReconcilerError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m reconciler.sandbox.aws", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument(
        "--parent-pid", type=int, default=os.getppid(), help="end at once if the parent is another"
    )
    for field in fields(Delays):
        option = "--" + field.name.replace("_", "-")
        parser.add_argument(option, type=float, default=field.default, metavar="SECONDS")
    return parser


def _end_with_parent(parent_pid: int) -> bool:
    """Let the kernel send SIGTERM when the parent dies; False when it is dead already."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    return os.getppid() == parent_pid


if __name__ == "__main__":
    sys.exit(main())
