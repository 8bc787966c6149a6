"""`reconciler completion`: what a shell sources, and what it then asks."""

import pytest

from reconciler.cli.commands import COMMANDS
from tests import command


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_script_is_printed_for_each_shell(shell: str) -> None:
    """People put it into the files that their shell reads."""
    done = command.reconciler("completion", shell)
    assert (done.returncode, done.stderr) == (0, "")
    assert "_RECONCILER_COMPLETE" in done.stdout


def test_shell_gets_the_commands_that_begin_so() -> None:
    """The script asks the program itself, so new commands need no new script."""
    asked = {
        "_RECONCILER_COMPLETE": "complete_bash",
        "COMP_WORDS": "reconciler re",
        "COMP_CWORD": "1",
    }
    done = command.reconciler(env=asked)
    assert done.stdout.split() == [name for name in COMMANDS if name.startswith("re")]


def test_unknown_shell_is_wrong_usage() -> None:
    """With the names of those that there are."""
    done = command.reconciler("completion", "tcsh")
    assert done.returncode == 2
    assert "bash" in done.stderr
