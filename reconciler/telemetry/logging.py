"""Logging of the whole process: structlog, JSON in production, one line per event on stderr."""

import logging
import os
import re
import sys
from collections.abc import Iterable, Mapping, MutableMapping
from contextlib import suppress
from typing import Any, Final, TextIO, cast

import orjson
import structlog

from reconciler.telemetry.scrubbing import Scrubber

_LEVELS: Final = (logging.INFO, logging.DEBUG)
"""By verbosity; with -v also why nothing was done."""
_FOREIGN_LEVELS: Final = (logging.ERROR, logging.WARNING, logging.INFO, logging.DEBUG)
"""By verbosity, for the libraries."""

TEXT_MAX: Final = 16_384
"""The length of one text of an event: a traceback is shorter, and collectors of logs cut or refuse
lines of some hundred kB."""

_STEERING: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
"""Control characters but tabs and line breaks, and what turns the direction of writing."""

Event = MutableMapping[str, Any]


def set_up_logging(
    verbosity: int = 0, secrets: Iterable[str] = (), stream: TextIO | None = None
) -> None:
    """Send every event to stderr: JSON, or coloured text on a terminal.

    Args:
        verbosity: 0 to 3, as -v, -vv, -vvv.
        secrets: Texts that are masked everywhere.
        stream: Stands in for stderr.
    """
    out = stream if stream is not None else sys.stderr
    scrubber = Scrubber(secrets, TEXT_MAX)
    terminal = out.isatty()
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
            # Always as text: the terminal's own form shows local variables, with what is secret.
            structlog.processors.format_exc_info,
            _scrubbing(scrubber),
            *(_for_terminals(wants_colours(out)) if terminal else (_as_json,)),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_of(_LEVELS, verbosity)),
        logger_factory=structlog.PrintLoggerFactory(cast(TextIO, _Unfailing(out))),
        cache_logger_on_first_use=False,
    )
    _take_over_foreign(_of(_FOREIGN_LEVELS, verbosity))


class _Unfailing:
    """The parts of a stream that loggers use; what cannot be written is lost.

    stderr may be a file on a full disk, or a pipe whose reader has ended. That must not stop the
    purchase of nodes or the renewal of the Lease.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write as far as that is possible."""
        with suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush as far as that is possible."""
        with suppress(OSError):
            self._stream.flush()


def wants_colours(stream: TextIO) -> bool:
    """Return whether to use colours: on a terminal, unless NO_COLOR or TERM=dumb is set.

    Source: no-color.org: NO_COLOR counts when it is not empty, whatever its value.
    """
    environment = os.environ  # noqa: TID251 - a terminal's settings, no config
    quiet = environment.get("NO_COLOR", "") or environment.get("TERM", "") == "dumb"
    return stream.isatty() and not quiet


def is_dumb_terminal() -> bool:
    """Return whether the terminal understands no control sequences."""
    return os.environ.get("TERM", "") == "dumb"  # noqa: TID251 - a terminal's setting, no config


def _of(levels: tuple[int, ...], verbosity: int) -> int:
    return levels[min(max(verbosity, 0), len(levels) - 1)]


def _for_terminals(colours: bool) -> tuple[Any, ...]:  # noqa: FBT001 - structlog's word
    """Return what makes coloured lines of events; values are quoted by structlog itself."""
    return _traceback_escaped, structlog.dev.ConsoleRenderer(colors=colours)


def _traceback_escaped(_logger: Any, _method: str, event: Event) -> Event:
    """Escape what would steer the terminal in a traceback: errors quote names of strangers."""
    text = event.get("exception")
    if isinstance(text, str):
        event["exception"] = _STEERING.sub(lambda found: repr(found[0])[1:-1], text)
    return event


def _scrubbing(scrubber: Scrubber) -> Any:
    def scrub(_logger: Any, _method: str, event: Event) -> Event:
        return {key: scrubber.entry(key, value) for key, value in event.items()}

    return scrub


def _as_json(_logger: Any, _method: str, event: Event) -> str:
    """Return one line; keys in their order, and values that JSON does not know as text."""
    try:
        return orjson.dumps(event, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
    except (TypeError, ValueError):
        # A lone surrogate, an integer over 64 bits, a key of another type: a log line must not end
        # the program, whatever name a pod has.
        return orjson.dumps(_writable(event)).decode()


def _writable(value: Any) -> Any:
    """Return the value with texts that UTF-8 can encode and integers that fit into 64 bits."""
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int):
        return value if -(1 << 63) <= value < 1 << 64 else hex(value)
    if isinstance(value, Mapping):
        return {str(_writable(str(key))): _writable(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_writable(each) for each in value]
    return str(value).encode(errors="backslashreplace").decode()


class _ToStructlog(logging.Handler):
    """Turns what libraries log through the standard library into our events."""

    def emit(self, record: logging.LogRecord) -> None:
        """Pass one record on."""
        try:
            structlog.get_logger().log(
                record.levelno, "library_message", logger=record.name, message=record.getMessage()
            )
        except Exception:  # noqa: BLE001 - logging must never end the program
            self.handleError(record)


def _take_over_foreign(level: int) -> None:
    root = logging.getLogger()
    for handler in [each for each in root.handlers if isinstance(each, _ToStructlog)]:
        root.removeHandler(handler)
    root.addHandler(_ToStructlog())
    root.setLevel(level)
