"""`python -m tests.benchmarks.e2e [latency] [churn] [--write] …`: at the size of the promise.

Needs two quiet cores, 10 GB of memory, Linux, and Go or the built programs of the control plane.
"""

import argparse
import os
import sys
from pathlib import Path

from reconciler.sandbox.control_plane.binaries import provide_binaries
from tests.benchmarks.e2e.findings import PARTS, Findings
from tests.benchmarks.e2e.measuring import run
from tests.benchmarks.e2e.progress import say
from tests.benchmarks.e2e.report import markdown, write_page

LONG_CHURN_SECONDS = 1800
"""What the promise is about: memory does not grow over so long."""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.e2e",
        description="Measure reaction, CPU and memory on a real control plane, and print.",
    )
    made.add_argument("parts", nargs="*", help=f"of: {', '.join(PARTS)} (both)")
    made.add_argument("--nodes", type=int, default=1000, help="Ready nodes (1000)")
    made.add_argument("--pods-per-node", type=int, default=30, help="running pods on each (30)")
    made.add_argument("--singles", type=int, default=60, help="single pods, one by one (60)")
    made.add_argument("--largest", type=int, default=5000, help="pods of the largest burst (5000)")
    made.add_argument("--churn", type=int, default=100, help="pods begun and ended a second (100)")
    made.add_argument(
        "--churn-seconds", type=float, default=90, help="for so long (90; 1800 to be written)"
    )
    made.add_argument("--idle-seconds", type=float, default=20, help="watch it idle first (20)")
    made.add_argument("--keep-log", type=Path, help="copy the reconciler's log here")
    made.add_argument(
        "--write", action="store_true", help="put complete parts' tables into the docs page"
    )
    return made


def _options() -> argparse.Namespace:
    made = parser()
    options = made.parse_args()
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        made.error(f"no such part: {', '.join(sorted(unknown))}")
    options.parts = [part for part in PARTS if part in (options.parts or PARTS)]
    return options


def main() -> int:
    """Run what was asked for; what was found is printed even if the run ends early."""
    options = _options()
    found = Findings(nodes=options.nodes, pods=options.nodes * options.pods_per_node)
    programs = provide_binaries(os.environ, say)  # noqa: TID251 - Go and its cache are there
    complete = False
    try:
        run(programs, options, found)
        complete = not found.missing
    finally:
        for part in options.parts:
            sys.stdout.write(f"\n{part}\n\n{markdown(part, found)}")
    if options.write:
        _write(options, found)
    return 0 if complete else 1


def _write(options: argparse.Namespace, found: Findings) -> None:
    """The complete parts; growth of memory is not shown by a short churn."""
    for part in options.parts:
        short = part == "churn" and options.churn_seconds < LONG_CHURN_SECONDS
        if part in found.missing or short:
            say(f"{part} is not written: {'too short' if short else 'it ended early'}")
        else:
            write_page(part, markdown(part, found))


if __name__ == "__main__":
    sys.exit(main())
