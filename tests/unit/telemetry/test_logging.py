"""Logging set up as the program does it."""

import errno
import io
import json
import logging
import os
from collections.abc import Iterator

import pytest
import structlog
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.telemetry.logging import _as_json, set_up_logging

QUICK = settings(max_examples=60, deadline=None, derandomize=True)


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    """Stands in for stderr; logging is as before afterwards."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield io.StringIO()
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    """The events that were logged."""
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_event_is_one_line_of_json(stream: io.StringIO) -> None:
    """A line break in a value would split an event in two."""
    set_up_logging(stream=stream)
    structlog.get_logger().info("action_applied", reason="two\nlines", node="n-1")
    (event,) = lines(stream)
    assert event["event"] == "action_applied"
    assert event["level"] == "info"
    assert event["reason"] == "two\nlines"
    assert str(event["at"]).endswith("Z")


class Disk(io.StringIO):
    """A file on a disk that may be full."""

    full = False

    def flush(self) -> None:
        """Fail while there is no room."""
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.usefixtures("stream")
def test_event_that_cannot_be_written_ends_nothing() -> None:
    """The loop and the election ended when the disk below stderr was full."""
    disk = Disk()
    set_up_logging(stream=disk)
    disk.full = True
    structlog.get_logger().error("cycle_failed")
    logging.getLogger("botocore").error("no answer")
    disk.full = False
    structlog.get_logger().info("cycle_ended")
    assert lines(disk)[-1]["event"] == "cycle_ended"


def test_debug_events_need_verbosity(stream: io.StringIO) -> None:
    """Why nothing happened is worth a line only to whoever asks."""
    set_up_logging(0, stream=stream)
    structlog.get_logger().debug("quiet")
    set_up_logging(1, stream=stream)
    structlog.get_logger().debug("asked_for")
    assert [event["event"] for event in lines(stream)] == ["asked_for"]


def test_secret_never_reaches_the_stream(stream: io.StringIO) -> None:
    """Logs are read by more people than Secrets are."""
    set_up_logging(stream=stream, secrets=["https://chat.example.com/hook"])
    error = ValueError("POST https://chat.example.com/hook")
    structlog.get_logger().error("notification_failed", token="abc", exc_info=error)
    assert "chat.example.com" not in stream.getvalue()
    assert "abc" not in stream.getvalue()
    assert "ValueError" in stream.getvalue()


class Terminal(io.StringIO):
    """A terminal of a person."""

    def isatty(self) -> bool:
        """Return that it is one."""
        return True


@pytest.mark.usefixtures("stream")
@pytest.mark.parametrize("verbosity", [0, 3])
def test_traceback_on_a_terminal_holds_no_secret_and_does_not_steer_it(verbosity: int) -> None:
    """With -vvv it had all local variables, and so the tokens of requests."""
    terminal, secret = Terminal(), "hunter2-the-token"

    def request(headers: dict[str, str]) -> None:
        raise ValueError(f"pod \x1b[2Ja\u202e\tb: {secret}, {len(headers)} header\nforged")

    set_up_logging(verbosity, [secret], terminal)
    try:
        request({"Authorization": f"Bearer {secret}"})
    except ValueError:
        structlog.get_logger().error("thread_failed", exc_info=True)
    said = terminal.getvalue()
    assert secret not in said
    assert "ValueError: pod \\x1b[2Ja\\u202e\tb: ***, 1 header\nforged" in said
    assert "\x1b[2J" not in said


def test_libraries_log_through_the_same_stream(stream: io.StringIO) -> None:
    """A plain-text warning between JSON lines breaks whoever reads them."""
    set_up_logging(1, stream=stream)
    set_up_logging(1, stream=stream)
    logging.getLogger("urllib3").warning("pool of %s is full", "host")
    (event,) = lines(stream)
    assert (event["logger"], event["message"]) == ("urllib3", "pool of host is full")


TEXTS = st.text(st.characters(), max_size=10)
"""Lone surrogates too: what undecodable bytes of an argument or a file's name become."""
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([2**63, 2**64, -(2**64), 10**4_000])
    | st.floats()
    | TEXTS,
    lambda each: st.lists(each, max_size=3) | st.dictionaries(TEXTS | st.integers(), each),
    max_leaves=6,
)


@QUICK
@given(st.dictionaries(TEXTS, VALUES, max_size=4))
def test_whatever_is_logged_is_one_line_that_json_can_read(event: dict[str, object]) -> None:
    """A log line that cannot be written ended the program: a pod's name could do that."""
    text = _as_json(None, "info", event)
    assert "\n" not in text
    assert isinstance(json.loads(text.encode()), dict)


@pytest.mark.parametrize(
    ("variables", "coloured"),
    [
        ({"TERM": "xterm"}, True),
        ({"TERM": "dumb"}, False),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False),
        ({"TERM": "xterm", "NO_COLOR": ""}, True),
    ],
)
def test_colours_follow_no_color_and_term(
    stream: io.StringIO,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    coloured: bool,
) -> None:
    """Escape sequences in a pager or an editor's terminal cannot be read."""
    for name in ("TERM", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    terminal = Terminal()
    set_up_logging(stream=terminal)
    structlog.get_logger().info("action_applied", node="n-1")
    assert ("\x1b[" in terminal.getvalue()) == coloured
