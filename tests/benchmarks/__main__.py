"""`python -m tests.benchmarks [NAME…] [--quick] [--write]`: measure and print, no verdicts."""

import argparse
import json
import subprocess
import sys

from tests.benchmarks import act, hostile_run, launching, notices, rescheduling, scale_down, small
from tests.benchmarks.cases import CASES
from tests.benchmarks.disturbance import table as disturbance
from tests.benchmarks.measure import Measurement
from tests.benchmarks.report import (
    HEADING,
    machine,
    missing_data,
    row,
    section,
    write_page,
    write_sections,
)

TIMEOUT_SECONDS = 600
APART = {
    each.NAME: each
    for each in (scale_down, act, hostile_run, disturbance, notices, rescheduling, small, launching)
}
"""Benchmarks with a measurement of their own."""
ALL = (*CASES, *APART)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    made.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(ALL)}; all")
    made.add_argument("--quick", action="store_true", help="only the smaller sizes")
    made.add_argument(
        "--write", action="store_true", help="also put these tables into the docs page"
    )
    return made


def measured_apart(name: str, number: int) -> Measurement:
    """One measurement in a process of its own.

    Raises:
        CalledProcessError: It failed; what it said is on stderr.
    """
    argv = [sys.executable, "-m", "tests.benchmarks.measure", name, str(number)]
    done = subprocess.run(argv, check=True, stdout=subprocess.PIPE, timeout=TIMEOUT_SECONDS)
    return Measurement(**json.loads(done.stdout))


def run(name: str, *, quick: bool) -> str:
    """Measure one case; its Markdown, while lines appear on stdout as they come."""
    if name in APART:
        sys.stdout.write(f"\n{name}: {APART[name].TITLE}\n")
        return str(APART[name].run())
    case = CASES[name]
    sys.stdout.write(f"\n{name}: {case.title}\n")
    if not case.sizes:
        sys.stdout.write(f"  not run: {case.data and case.data.name} is not on this machine\n")
        return missing_data(name)
    found = []
    for number in range(len(case.sizes))[: case.quick if quick else None]:
        found.append(measured_apart(name, number))
        cells = zip(HEADING, row(found[-1]), strict=True)
        sys.stdout.write("  " + "; ".join(f"{head} {cell}" for head, cell in cells) + "\n")
        sys.stdout.flush()
    return section(name, found)


def main() -> int:
    """Run what was asked for."""
    arguments = parser().parse_args()
    unknown = [name for name in arguments.names if name not in ALL]
    if unknown:
        sys.stderr.write(f"error: no benchmark {', '.join(unknown)}: there are {', '.join(ALL)}\n")
        return 2
    sections = {name: run(name, quick=arguments.quick) for name in arguments.names or ALL}
    if arguments.write and arguments.names:
        write_sections({name: f"{text.rstrip()}\n\n{machine()}" for name, text in sections.items()})
    elif arguments.write:
        write_page(f"{machine()}\n\n" + "\n".join(sections.values()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
