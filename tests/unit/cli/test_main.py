"""The command line: errors as one line, exit codes, help with examples, a fast start."""

import io
import subprocess
import sys
from pathlib import Path

import pytest
from typing_extensions import override

from reconciler import __version__
from reconciler.cli import commands
from reconciler.cli.main import build, run
from reconciler.cli.options import verbosity
from reconciler.cli.terminal.output import Output, print_table, use_colours, wanted

LIST_HEAVY_MODULES = """
import sys
from pathlib import Path
from reconciler.cli.main import run
run(["--help"])
sys.exit(" ".join({"pydantic", "boto3", "numpy", "yaml", "rich"} & set(sys.modules)))
"""


def reconciler(*args: str) -> subprocess.CompletedProcess[str]:
    """The program as a process."""
    return subprocess.run(
        [sys.executable, "-c", "from reconciler.cli.main import main; main()", *args],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_help_lists_commands_without_importing_them(capsys: pytest.CaptureFixture[str]) -> None:
    """A help that loads boto3, numpy and Kubernetes takes seconds."""
    assert run(["--help"]) == 0
    out = capsys.readouterr().out
    assert "validate  " in out
    assert "Example:\n" in out
    loaded = subprocess.run(
        [
            sys.executable,
            "-c",
            LIST_HEAVY_MODULES,
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert loaded.stderr.strip() == ""


def test_every_command_has_an_example_and_takes_v() -> None:
    """A command without an example is used by trial and error."""
    for name in build().list_commands(None):
        command = commands.load_command(name)
        assert "Example:\n" in command.epilog, name
        options = {option for parameter in command.params for option in parameter.opts}
        assert "-v" in options or hasattr(command, "commands"), name


def test_every_ci_command_has_an_example_of_its_own() -> None:
    """The help of `ci unlock` that shows how to plan helps nobody whose state is locked."""
    group = commands.load_command("ci")
    for name, command in group.commands.items():
        assert command.epilog.splitlines()[2].startswith(f"  reconciler ci {name} "), name
        assert name in commands.COMMANDS["ci"]
        assert name in group.help


def test_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """A bug report without a version is a riddle."""
    assert run(["--version"]) == 0
    assert __version__ in capsys.readouterr().out


@pytest.mark.parametrize("command", ["plan", "drift"])
@pytest.mark.parametrize(
    "wrong", ["--no-such-option", "--lock-timeout=abc", "--output=xml", "--help=no"]
)
def test_no_error_looks_like_changes(
    command: str, wrong: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A pipeline that mistypes an option must not be told that there are changes."""
    assert run(["ci", command, "--detailed-exitcode", wrong]) == 1
    assert run(["ci", command, "--detailed-exitcode=yes"]) == 1
    assert run(["ci", command, wrong]) == 2
    assert capsys.readouterr().err.startswith("error: reconciler ci")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["valdate"], "error: reconciler: no such command 'valdate'; did you mean validate?"),
        (["validate", "--bogus"], "error: reconciler validate: No such option: --bogus"),
        (
            ["render", "a", "b", "--out", "c"],
            "error: reconciler render: Got unexpected extra argument",
        ),
        (["validate", "--output", "xml"], "error: reconciler validate: Invalid value for"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Scripts tell wrong usage from failure by the exit code."""
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith(message)
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_no_command_shows_the_help_and_exits_2() -> None:
    """Nothing was asked for, so nothing was done."""
    result = reconciler()
    assert result.returncode == 2
    assert "Commands:" in result.stderr
    assert "error:" not in result.stderr


def test_traceback_comes_only_with_vvv(capsys: pytest.CaptureFixture[str]) -> None:
    """Operators need the line, developers the traceback."""
    run(["validate", "--bogus"])
    assert "Traceback" not in capsys.readouterr().err
    run(["-vvv", "validate", "--bogus"])
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "level"),
    [
        (["validate", "-"], 0),
        (["-v", "validate", "-"], 1),
        (["validate", "-vv", "-"], 2),
        (["-v", "validate", "-vvvv", "-"], 3),
    ],
)
def test_v_counts_before_and_after_the_command(
    arguments: list[str], level: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """People put it where it comes to mind."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"{}")))
    run(arguments)
    assert verbosity.current() == level


def test_closed_pipe_ends_quietly() -> None:
    """`reconciler validate --schema | head` must not print a traceback."""
    program = [sys.executable, "-c", "from reconciler.cli.main import main; main()"]
    with subprocess.Popen(
        [*program, "validate", "--schema"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(1)
        process.stdout.close()
        errors = process.stderr.read()
        process.wait(timeout=60)
    assert errors == b""


INTERRUPTED_WHILE_LOADING = """
import os, signal, sys
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
from reconciler.__main__ import main
sys.argv[1:] = ["--version"]
main()
"""


def test_interrupt_while_the_program_is_loaded_ends_it_quietly() -> None:
    """Ctrl-C in the first half second printed a traceback, and ended it by the signal."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_WHILE_LOADING],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_json_is_the_default_when_stdout_is_no_terminal() -> None:
    """A pipe wants data, a person wants a table."""

    class Terminal(io.StringIO):
        """A stream that is one."""

        @override
        def isatty(self) -> bool:
            return True

    assert wanted(None, io.StringIO()) is Output.JSON
    assert wanted(None, Terminal()) is Output.TABLE
    assert wanted(Output.TABLE, io.StringIO()) is Output.TABLE


def test_table_steers_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """A pod's or a fleet's author could clear the screen of whoever lists it, and write over it."""
    print_table(["fleet"], [["\x1b[2Jx\r\x9b1m"]])
    assert capsys.readouterr().out == "FLEET\n�[2Jx��1m\n"


def test_name_with_a_newline_begins_no_line_of_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    """GitHub takes a line that begins with `::error` as an annotation of the pipeline's own."""
    print_table(["config", "state"], [["a\n::error file=b::forged", "ok"]])
    assert capsys.readouterr().out.splitlines()[1:] == ["a\\n::error file=b::forged  ok"]


def test_error_steers_no_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A message names files of a repository, which somebody else wrote."""
    file = tmp_path / "\x1b[2Jkey.yaml"
    file.write_text("cluster: c\nunknown: 1\n")
    for command in (["validate", str(file), "-o", "table"], ["plan", "--config", str(file)]):
        assert run(command) == 2
    out, error = capsys.readouterr()
    assert "key" in out
    assert "key" in error
    assert "\x1b" not in out + error


def test_table_is_aligned_and_plain_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    """Escape sequences in a log file are noise."""
    print_table(["fleet", "target"], [["primary-small", 5], ["x", 12]])
    assert capsys.readouterr().out == "FLEET          TARGET\nprimary-small  5\nx              12\n"
    assert not use_colours()
