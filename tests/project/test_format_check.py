"""How the shipped pipelines check Terraform's format, and what they print of it."""

import subprocess
from pathlib import Path

import pytest

from tests.project.pipelines import GITHUB, GITLAB, gitlab_jobs, steps_of


def format_check(file: Path) -> str:
    """The command of a pipeline that checks Terraform's format."""
    if file == GITHUB:
        commands = [str(step.get("run", "")) for step in steps_of("plan")]
    else:
        commands = gitlab_jobs()["plan $[[ inputs.root ]]"]["script"]
    (found,) = [command for command in commands if "terraform fmt" in command]
    return found


@pytest.mark.parametrize("file", [GITHUB, GITLAB])
def test_names_of_unformatted_files_stay_out_of_the_log(file: Path) -> None:
    """A name with a newline and `::error` in it writes an annotation in the platform's name."""
    commands = [line for line in file.read_text().splitlines() if "terraform fmt -check" in line]
    assert len(commands) == 1
    assert commands[0].endswith("> /dev/null 2>&1")


@pytest.mark.parametrize("file", [GITHUB, GITLAB])
@pytest.mark.parametrize(
    ("code", "said"),
    [
        (0, ""),
        (3, "a file is not in Terraform's format: run terraform fmt -recursive there\n"),
        (2, "terraform fmt fails with code 2: run terraform fmt -recursive there\n"),
        (127, "terraform fmt fails with code 127: run terraform fmt -recursive there\n"),
    ],
)
def test_only_an_unformatted_file_is_called_a_matter_of_format(
    file: Path, code: int, said: str, tmp_path: Path
) -> None:
    """A syntax error, a missing folder and a missing Terraform looked like unformatted files."""
    program = tmp_path / "terraform"
    program.write_text(f"#!/bin/sh\necho '::error::a name of the pull request'\nexit {code}\n")
    program.chmod(0o755)
    done = subprocess.run(
        ["/bin/bash", "-e", "-o", "pipefail", "-c", format_check(file)],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "ROOT": "fleets"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (min(code, 1), said, "")
