"""`python -m reconciler.sandbox.cluster`: one JSON line when ready, then serve until a signal."""

import argparse
import dataclasses
import json
import os
import sys
from pathlib import Path

from reconciler.sandbox.cluster.server import ClusterServer
from reconciler.sandbox.cluster.settings import ClusterSettings
from reconciler.sandbox.processes import StopSignals, die_with_parent


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="reconciler.sandbox.cluster", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--kubeconfig", type=Path, help="write it here (default: a temporary file)")
    parser.add_argument("--parent", type=int, default=os.getppid(), help="process id to die with")
    for field in dataclasses.fields(ClusterSettings):
        option = "--" + field.name.replace("_", "-")
        parser.add_argument(option, type=type(field.default), default=field.default)
    return parser


def main() -> int:
    """Serve until SIGTERM or SIGINT."""
    options = vars(_parser().parse_args())
    port, kubeconfig, parent = (options.pop(name) for name in ("port", "kubeconfig", "parent"))
    signals = StopSignals()
    die_with_parent(parent)
    with ClusterServer(ClusterSettings(**options), port=port) as server:
        if kubeconfig is None:
            kubeconfig = server.kubeconfig
        else:
            server.write_kubeconfig(kubeconfig)
        line = {"url": server.url, "kubeconfig": str(kubeconfig)}
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()
        signals.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
