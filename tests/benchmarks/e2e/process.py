"""The reconciler as a process, and what the kernel tells of it."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.benchmarks.e2e.waiting import until
from tests.growing import complete_lines

_TICKS = os.sysconf("SC_CLK_TCK")
_MIB_KIB = 1024
_STOP_SECONDS = 20
_SAMPLE_SECONDS = 1.0
_FIRST_PLAN_SECONDS = 300


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far, all of its threads."""
    times = Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()
    return (int(times[11]) + int(times[12])) / _TICKS


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What the process has used by a moment."""

    at: float
    """Monotonic seconds."""
    cpu_seconds: float
    rss_mib: float


@dataclass(slots=True)
class Reconciler:
    """`reconciler run`, watched."""

    process: subprocess.Popen[bytes]
    log: Path
    started: float
    samples: list[Usage] = field(default_factory=list)
    _stopping: threading.Event = field(default_factory=threading.Event)

    def events(self, name: str) -> list[dict[str, Any]]:
        """The log's events of one name so far."""
        lines = complete_lines(self.log)
        found = [json.loads(line) for line in lines if line.startswith("{")]
        return [each for each in found if each["event"] == name]

    def usage(self) -> Usage:
        """What it has used by now."""
        return Usage(
            at=time.monotonic(),
            cpu_seconds=cpu_seconds(self.process.pid),
            rss_mib=self._memory_mib("VmRSS:"),
        )

    def peak_mib(self) -> float:
        """The largest resident size so far."""
        return self._memory_mib("VmHWM:")

    def _memory_mib(self, line: str) -> float:
        text = Path("/proc", str(self.process.pid), "status").read_text()
        return int(text.partition(line)[2].split()[0]) / _MIB_KIB

    def sample(self) -> None:
        """Take samples until stopped."""
        while not self._stopping.wait(_SAMPLE_SECONDS) and self.process.poll() is None:
            with suppress(OSError, IndexError):  # it may end just now
                self.samples.append(self.usage())

    def stop_sampling(self) -> None:
        """End `sample`."""
        self._stopping.set()

    def first_plan_seconds(self) -> float:
        """From its start to its first finished cycle; waits for that."""

        def planned() -> bool:
            if self.process.poll() is not None:
                raise RuntimeError(f"reconciler run ended: {self.log.read_text()[-2000:]}")
            return bool(self.events("cycle_ended"))

        until("the first plan", planned, _FIRST_PLAN_SECONDS, 0.02)
        return time.monotonic() - self.started


@contextmanager
def reconciler(config: Path, environment: Mapping[str, str]) -> Iterator[Reconciler]:
    """Start it, sample it, end it.

    Args:
        config: Sector config; the log goes beside it.
        environment: What the sandbox asks programs to have.
    """
    log = config.with_suffix(".log")
    argv = [sys.executable, "-m", "reconciler", "run", "--config", str(config)]
    inherited = os.environ  # noqa: TID251 - a child inherits ours
    with log.open("wb") as stream:
        started = time.monotonic()
        child = subprocess.Popen(argv, env={**inherited, **environment}, stderr=stream)
    running = Reconciler(child, log, started)
    sampler = threading.Thread(target=running.sample, daemon=True)
    try:
        sampler.start()
        yield running
    finally:
        running.stop_sampling()
        sampler.join()
        child.terminate()
        try:
            child.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
