"""`python -m reconciler.sandbox.aws`: AWS on loopback as a process of its own.

Prints one line of JSON, {"url": ...}, when it serves; ends with its parent, on SIGTERM or SIGINT.
"""

import argparse
import json
import os
import signal
import sys
from dataclasses import fields

from reconciler.model.errors import ReconcilerError
from reconciler.sandbox.aws.server import AwsServer
from reconciler.sandbox.aws.values import Delays
from reconciler.sandbox.processes import die_with_parent

_ENDING = {signal.SIGTERM, signal.SIGINT}


def main(arguments: list[str] | None = None) -> int:
    """Serve until a signal ends it; return the exit code."""
    options = _parser().parse_args(arguments)
    delays = Delays(**{f.name: getattr(options, f.name) for f in fields(Delays)})
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    die_with_parent(options.parent)
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
    parser.add_argument("--parent", type=int, default=os.getppid(), help="process id to die with")
    for field in fields(Delays):
        option = "--" + field.name.replace("_", "-")
        parser.add_argument(option, type=float, default=field.default, metavar="SECONDS")
    return parser


if __name__ == "__main__":
    sys.exit(main())
