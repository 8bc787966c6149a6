"""The line on stderr that says what a command is at."""

import io

import pytest

from reconciler.cli.terminal import progress_line as module
from reconciler.cli.terminal.progress_line import working
from tests.waiting import until


class Terminal(io.StringIO):
    """Says that it is one."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pauses of a test."""
    monkeypatch.setattr(module, "QUIET_SECONDS", 0.05)
    monkeypatch.setattr(module, "EVERY_SECONDS", 0.01)
    monkeypatch.setenv("TERM", "xterm")


def until_shown(stream: Terminal) -> None:
    """Work until it was shown."""
    until("it is shown", lambda: "planning (" in stream.getvalue() or None, look_seconds=0.01)


def fail_late(stream: Terminal) -> None:
    """Work that fails after it was shown."""
    with working("planning", stream):
        until_shown(stream)
        raise ValueError("no")


def test_long_work_is_shown_and_leaves_nothing_behind() -> None:
    """A command that says nothing for a minute looks as if it hung."""
    stream = Terminal()
    with working("planning", stream):
        until_shown(stream)
    assert "planning (0 s)" in stream.getvalue()
    assert stream.getvalue().endswith("\r\x1b[K")


def test_short_work_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that flickers distracts from the answer."""
    monkeypatch.setattr(module, "QUIET_SECONDS", 60.0)
    stream = Terminal()
    with working("planning", stream):
        pass
    assert stream.getvalue() == ""


@pytest.mark.parametrize(("stream", "term"), [(io.StringIO(), "xterm"), (Terminal(), "dumb")])
def test_progress_is_shown_only_on_a_terminal_that_can_write_over(
    stream: io.StringIO, term: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Logs of pipelines would be full of control sequences."""
    told = Terminal()
    monkeypatch.setenv("TERM", term)
    with working("planning", stream):
        monkeypatch.setenv("TERM", "xterm")
        with working("planning", told):
            until_shown(told)
    assert stream.getvalue() == ""


def test_error_of_the_work_comes_through_and_the_line_goes() -> None:
    """The message would stand behind the progress, on the same line."""
    stream = Terminal()
    with pytest.raises(ValueError, match="no"):
        fail_late(stream)
    assert stream.getvalue().endswith("\r\x1b[K")
