"""A CI runner small enough for a laptop: plan, then apply, each as a process of its own.

It stands for the config repository's pipeline in the sandbox and the demo. Like a real runner it
starts from nothing but a commit: a fresh checkout, an environment, and the `reconciler` program.
"""

import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from reconciler.model.errors import ToolError

_PROGRAM = ("-c", "from reconciler.cli.main import main; main()")
"""The console script of this very installation, wherever it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineJob:
    """One commit to be planned and applied."""

    repository: str
    """Path or address of the config repository."""
    commit: str
    environment: Mapping[str, str]
    """The whole environment of the processes, AWS settings included."""
    directory: str = "terraform"
    """The rendered root module, relative to the repository."""
    timeout_seconds: float = 900.0
    """Of each process."""
    apply: bool = True
    """False for what a pull request gets: the plan alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineStep:
    """One process that a pipeline ran."""

    name: str
    command: tuple[str, ...]
    exit_code: int
    output: str
    """Standard output."""
    errors: str
    """Standard error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineRun:
    """What a pipeline came to."""

    steps: tuple[PipelineStep, ...]
    """Up to and including the first that failed."""
    summary: str
    """The plan's Markdown; empty when it never got that far."""

    @property
    def succeeded(self) -> bool:
        """Whether every step did."""
        return all(step.exit_code == 0 for step in self.steps)


def run_pipeline(job: PipelineJob) -> PipelineRun:
    """Check the commit out afresh, plan, and apply exactly that plan.

    Raises:
        ToolError: A process could not be started or took longer than its limit.
    """
    with tempfile.TemporaryDirectory(prefix="fleet-reconciler-ci-") as scratch:
        checkout, plans = Path(scratch, "checkout"), Path(scratch, "plan")
        steps: list[PipelineStep] = []
        for name, command, folder in _commands(job, checkout, plans):
            steps.append(_ran(name, command, folder, job))
            if steps[-1].exit_code:
                break
        return PipelineRun(steps=tuple(steps), summary=_text(plans / "summary.md"))


def _commands(
    job: PipelineJob, checkout: Path, plans: Path
) -> Sequence[tuple[str, tuple[str, ...], Path]]:
    """Name, command line and folder of each step."""
    root = ("--dir", job.directory)
    program = (sys.executable, *_PROGRAM, "ci")
    steps = [
        (
            "clone",
            ("git", "clone", "--quiet", "--no-checkout", "--", job.repository, str(checkout)),
            checkout.parent,
        ),
        ("checkout", ("git", "checkout", "--quiet", "--detach", job.commit, "--"), checkout),
        ("plan", (*program, "plan", *root, "--out", str(plans), "--output", "json"), checkout),
    ]
    if job.apply:
        applying = (*program, "apply", *root, "--plan", str(plans), "--output", "json")
        steps.append(("apply", applying, checkout))
    return steps


def _ran(name: str, command: tuple[str, ...], folder: Path, job: PipelineJob) -> PipelineStep:
    try:
        done = subprocess.run(  # noqa: S603 - no shell; the words are ours and the job's
            command,
            cwd=folder,
            env={**job.environment, "GIT_TERMINAL_PROMPT": "0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=job.timeout_seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ToolError(f"pipeline {name}", f"took longer than {error.timeout:g} s") from error
    except OSError as error:
        raise ToolError(f"pipeline {name}", f"cannot be started: {error.strerror}") from error
    return PipelineStep(
        name=name,
        command=command,
        exit_code=done.returncode,
        output=done.stdout,
        errors=done.stderr,
    )


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8") if file.is_file() else ""
