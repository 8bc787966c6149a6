"""The entry point of `reconciler` and `python -m reconciler`; an interrupt shows no traceback."""

import os
import signal
import sys
from typing import Any, Final

EXIT_INTERRUPTED: Final = 130
"""128 + SIGINT, the shell's convention; `reconciler.cli.main` ends with the same."""
EXIT_TERMINATED: Final = 143
"""128 + SIGTERM, as a container's runtime says of a process that the signal ended."""
FIRST_PROCESS: Final = 1
"""Process id 1: the kernel drops signals to it that it has no handler for."""


def main() -> None:
    """Load the command line and run it; ends the process.

    Loading takes half a second. Nothing has begun by then, so Ctrl-C ends the process at once.
    """
    if os.getpid() == FIRST_PROCESS and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        # Holds until a command installs its own handler, and again for a second SIGTERM.
        signal.signal(signal.SIGTERM, _terminate_at_once)
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:  # else it stays ignored, as under nohup
        signal.signal(signal.SIGINT, _end_at_once)
    from reconciler.cli.main import main as run_command_line  # noqa: PLC0415 - see above

    try:
        signal.signal(signal.SIGINT, handler)
        run_command_line()
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)


def _end_at_once(*_: Any) -> None:
    os._exit(EXIT_INTERRUPTED)


def _terminate_at_once(*_: Any) -> None:
    os._exit(EXIT_TERMINATED)


if __name__ == "__main__":
    main()
