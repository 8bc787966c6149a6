"""Runs `reconciler` as a process, without paying for the start of Python each time.

The fork server (`tests.fork_server`) has imported the program and forks for every call. A call has
a process of its own: its environment, directory, signals, limits and exit code are those of a
program that was started from a shell. What only a real start shows (the entry points, the time
until the first line, Ctrl-C while it loads) is tested with `sys.executable`.
"""

import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.fork_server import Forked


def start(
    *arguments: str,
    env: Mapping[str, str],
    error: Path,
    out: Path = Path(os.devnull),
    cwd: Path | None = None,
) -> Forked:
    """The running process of `reconciler ARGUMENTS`.

    Args:
        arguments: What follows the program's name.
        env: Its whole environment.
        error: Where standard error goes.
        out: Where standard output goes.
        cwd: Its working directory; the caller's by default.
    """
    directory = Path.cwd() if cwd is None else cwd
    return Forked(_call, arguments, str(directory), dict(env), str(out), str(error))


def reconciler(
    *arguments: str,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout_seconds: float = 120,
) -> subprocess.CompletedProcess[str]:
    """The ended process of `reconciler ARGUMENTS`, with its output.

    Args:
        arguments: What follows the program's name.
        cwd: Its working directory; the caller's by default.
        env: Its whole environment; the caller's by default.
        timeout_seconds: After this long it is killed.

    Raises:
        subprocess.TimeoutExpired: It did not end in time.
    """
    given = os.environ if env is None else env  # noqa: TID251 - a child inherits ours
    with tempfile.TemporaryDirectory(prefix="reconciler-command-") as folder:
        out, error = Path(folder) / "out", Path(folder) / "error"
        process = start(*arguments, cwd=cwd, env=given, out=out, error=error)
        try:
            status = process.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise subprocess.TimeoutExpired(
                ["reconciler", *arguments], timeout_seconds, _text(out), _text(error)
            ) from None
        return subprocess.CompletedProcess(
            ["reconciler", *arguments], status, _text(out).decode(), _text(error).decode()
        )


def _text(file: Path) -> bytes:
    return file.read_bytes() if file.exists() else b""


def _call(
    arguments: tuple[str, ...], directory: str, env: Mapping[str, str], out: str, error: str
) -> None:
    """Become the program: runs in the forked process."""
    import atexit  # noqa: PLC0415 - of the forked process
    import sys  # noqa: PLC0415 - as above

    from reconciler.cli.main import main  # noqa: PLC0415 - imported by the server already

    os.environ.clear()  # noqa: TID251 - of the forked process
    os.environ.update(env)  # noqa: TID251 - of the forked process
    tempfile.tempdir = None  # the server's, until it is asked for again
    os.chdir(directory)
    for file, number in ((out, 1), (error, 2)):
        opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    sys.argv = ["reconciler", *arguments]
    try:
        main(arguments)
    finally:
        sys.stdout.flush()
        atexit._run_exitfuncs()
