"""The progress of a simulation on a terminal."""

import errno
import io

import pytest
from typing_extensions import override

from reconciler.cli.views import simulate as module
from reconciler.cli.views.simulate import Progress, column_heads


class Terminal(io.StringIO):
    """A stream that is one."""

    @override
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("term", "shown"), [("xterm", True), ("dumb", False)])
def test_progress_is_shown_where_a_line_can_be_written_over(
    term: str, monkeypatch: pytest.MonkeyPatch, *, shown: bool
) -> None:
    """An editor's shell shows control sequences as they are."""
    monkeypatch.setattr(module, "QUIET_SECONDS", -1.0)
    monkeypatch.setenv("TERM", term)
    stream = Terminal()
    with Progress(stream) as progress:
        progress.show("sectors.yaml", 0.5)
    assert ("sectors.yaml: 50%" in stream.getvalue()) is shown
    assert ("\x1b" in stream.getvalue()) is shown


def test_what_is_printed_stays_next_to_the_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """An outage of days ago is read from the terminal, or from a file that has stderr."""
    monkeypatch.setattr(module, "QUIET_SECONDS", -1.0)
    monkeypatch.setenv("TERM", "xterm")
    terminal, file = Terminal(), io.StringIO()
    for stream in (terminal, file):
        with Progress(stream) as progress:
            progress.show("7 lines", 0.5)
            progress.tell("the API server is away")
    assert "\x1b[Kthe API server is away\n" in terminal.getvalue()
    assert file.getvalue() == "the API server is away\n"


class Full(io.StringIO):
    """A stream into a file on a full disk."""

    @override
    def write(self, _text: str) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_line_that_cannot_be_written_ends_nothing() -> None:
    """A recording of days would end with its next outage, as if its own file were at fault."""
    Progress(Full()).tell("the API server is away")


def test_values_of_a_sweep_are_whole_in_the_heads_of_its_columns() -> None:
    """A value with a slash was cut like a path: the column was headed by `a)`."""
    named = [{"config": f"sectors.yaml (path {value})"} for value in ("/records/a", "/records/b")]
    assert column_heads({"runs": named, "sweep": {}}) == [each["config"] for each in named]


def test_paths_of_configs_are_shortened_to_what_tells_them_apart() -> None:
    """Long paths made columns of one letter's width."""
    named = [{"config": f"/home/team/{folder}/sectors.yaml"} for folder in ("old", "new")]
    assert column_heads({"runs": named}) == ["old/sectors.yaml", "new/sectors.yaml"]
