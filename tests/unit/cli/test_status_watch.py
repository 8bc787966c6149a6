"""`status --watch`: each answer is shown, a missing one too; no text steers the terminal."""

import json
import os
from collections.abc import Callable
from typing import Any

import pytest

from reconciler.cli.status import watched
from reconciler.cli.terminal.output import Output
from reconciler.cli.terminal.streams import prepare
from reconciler.cli.views.status import console, view_of
from reconciler.model.errors import Unavailable
from tests.unit.web.scene import Scene, fleet, unplaced

Json = dict[str, Any]


def answers(*steps: Callable[[], Json]) -> Callable[[], Json]:
    """Ask one step after the other; the last one is Ctrl-C."""
    left = iter(steps)

    def ask() -> Json:
        step = next(left, None)
        if step is None:
            raise KeyboardInterrupt
        return step()

    return ask


def gone() -> Json:
    """Nobody listens."""
    raise Unavailable("127.0.0.1:9235", "nothing answers")


def asked_in_vain() -> Json:
    """Nobody reads the answer any more."""
    raise AssertionError("asked although the reader has ended")


def test_watch_shows_each_state_and_goes_on_without_an_answer(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The program is restarted while somebody watches."""
    with Scene() as scene:
        scene.cycle(fleets=(fleet(),))

        def working() -> Json:
            return dict(json.loads(scene.ask("/api/status")[2]))

        with pytest.raises(KeyboardInterrupt):
            watched(answers(working, gone, working), Output.TABLE, interval_seconds=0.0)
    # Where there is no terminal each state follows the one before.
    states = ("OK: ", "NO ANSWER: ")
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith(states)]
    assert lines == [
        "OK: No pod waits",
        "NO ANSWER: 127.0.0.1:9235: nothing answers",
        "OK: No pod waits",
    ]


@pytest.mark.parametrize("form", list(Output))
def test_watch_ends_when_its_reader_has_ended(
    form: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`reconciler status --watch -o table | head -1` must not leave a process behind."""
    with Scene() as scene:
        one = dict(json.loads(scene.ask("/api/status")[2]))
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as pipe:
        monkeypatch.setattr("sys.stdout", pipe)
        prepare()
        watched(answers(lambda: one, asked_in_vain), form, interval_seconds=0.0)


def test_watch_shows_each_state_on_a_terminal_that_cannot_be_steered(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With TERM=dumb nothing was shown before the end."""
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    with pytest.raises(KeyboardInterrupt):
        watched(answers(gone, gone), Output.TABLE, interval_seconds=0.0)
    said = capsys.readouterr().out
    assert said.count("NO ANSWER: ") == 2
    assert "\x1b" not in said


def test_watch_for_programs_is_one_document_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    """`jq` reads a stream, which a restart of the program must not end."""
    with Scene() as scene:
        one = dict(json.loads(scene.ask("/api/status")[2]))
    ask = answers(lambda: one, gone, lambda: one)
    with pytest.raises(KeyboardInterrupt):
        watched(ask, Output.JSON, interval_seconds=0.0)
    said = capsys.readouterr()
    lines = said.out.splitlines()
    assert [json.loads(line)["verdict"]["level"] for line in lines] == ["starting", "starting"]
    assert said.err == "error: 127.0.0.1:9235: nothing answers\n"


def test_names_from_strangers_do_not_steer_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A pod's message could clear the screen, or paint it green."""
    with Scene() as scene:
        scene.cycle(unplaceable=(unplaced("a", "zone", detail="\x1b[2J[bold]boo"),))
        status = json.loads(scene.ask("/api/status")[2])
        status["workloads"][0]["remedy"] = "\x1b[2J[bold]boo"
        console().print(view_of(status))
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "[bold]boo" in out
