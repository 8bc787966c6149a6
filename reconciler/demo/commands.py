"""Runs the program itself, and git, as a person or a pipeline would."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from reconciler.model.errors import ToolError

TIMEOUT_SECONDS = 300.0
_PROGRAM = (sys.executable, "-m", "reconciler")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """How a command ended."""

    code: int
    out: str
    errors: str


def environment(sandbox: Mapping[str, str]) -> dict[str, str]:
    """Return this process's environment without anything that could reach a real account."""
    mine = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}  # noqa: TID251 - children inherit ours
    return {**mine, **sandbox, "GIT_TERMINAL_PROMPT": "0", "NO_COLOR": "1"}


def run(
    argv: Sequence[str], where: Path, env: Mapping[str, str], codes: Sequence[int] = (0,)
) -> CommandResult:
    """Run a command to its end.

    Raises:
        ToolError: The command is missing, took too long or ended with an unexpected exit code.
    """
    name = " ".join(argv[:3])
    try:
        done = subprocess.run(  # noqa: S603 - argv is built here, no shell
            list(argv),
            cwd=where,
            env=dict(env),
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
    except FileNotFoundError as error:
        raise ToolError(argv[0], "is not installed", "the demo needs git and Terraform") from error
    except subprocess.TimeoutExpired as error:
        raise ToolError(name, f"took longer than {TIMEOUT_SECONDS:.0f} s") from error
    if done.returncode not in codes:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-12:]
        raise ToolError(name, f"ended with exit code {done.returncode}: " + " | ".join(last))
    return CommandResult(code=done.returncode, out=done.stdout, errors=done.stderr)


def reconciler(
    arguments: Sequence[str], where: Path, env: Mapping[str, str], codes: Sequence[int] = (0,)
) -> CommandResult:
    """Run `reconciler ARGUMENTS`."""
    return run([*_PROGRAM, *arguments], where, env, codes)


def start_reconciler(
    arguments: Sequence[str], where: Path, env: Mapping[str, str], log: Path
) -> subprocess.Popen[bytes]:
    """Start `reconciler ARGUMENTS` in the background; its log goes to a file."""
    with log.open("wb") as stream:
        return subprocess.Popen(  # noqa: S603 - argv is built here, no shell
            [*_PROGRAM, *arguments],
            cwd=where,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
        )


def git(arguments: Sequence[str], where: Path, env: Mapping[str, str]) -> str:
    """Run `git ARGUMENTS` and return its standard output."""
    identity = ("-c", "user.name=platform team", "-c", "user.email=platform@example.com")
    return run(["git", *identity, *arguments], where, env).out.strip()
