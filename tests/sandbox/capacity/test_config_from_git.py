"""One config in git for both loops: no file beside the program, no restart."""

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from reconciler.sandbox.stack import Sandbox
from tests.git_remote import git, make_remote, write_and_push
from tests.sandbox.capacity.world import CONFIG, Program, World
from tests.waiting import until


def status(program: Program) -> dict[str, Any]:
    """`/api/status`, which `reconciler status` prints."""
    found: dict[str, Any] = json.loads(program.get("/api/status")[1])
    return found


def committed(work: Path, text: str) -> str:
    """A person's commit on top of what the loop rendered; its name."""
    git(work, "pull", "-q", "--rebase", "origin", "main")
    try:
        return write_and_push(work, "sectors.yaml", text, "Change the config")
    except subprocess.CalledProcessError:  # the loop pushed in between: once for each config
        git(work, "pull", "-q", "--rebase", "origin", "main")
        git(work, "push", "-q", "origin", "HEAD:main")
        return git(work, "rev-parse", "HEAD")


def children(process: int) -> dict[int, str]:
    """Command lines of the children of a process, by their ids."""
    listed = Path(f"/proc/{process}/task").glob("*/children")
    ids = [int(each) for file in listed for each in file.read_text().split()]
    lines = {each: Path(f"/proc/{each}/cmdline") for each in ids}
    return {each: file.read_text().replace("\0", " ") for each, file in lines.items()}


def second_loops(program: Program) -> list[int]:
    """The processes of the second loop."""
    return [i for i, line in children(program.process.pid).items() if " gitops " in line]


def is_running(process: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().split()[2]
    except FileNotFoundError:
        return False
    return state != "Z"


def wait_until(program: Program, look: Callable[[], object]) -> Any:
    """What `look` finds while the program runs."""
    return until(lambda: program.log_text[-4000:], look, process=program.process)


def test_commit_reaches_the_capacity_loop_which_survives_the_second_one(
    sandbox: Sandbox, world: World, tmp_path: Path
) -> None:
    """A minimum was committed, and 25 s later the target was still the old one."""
    work = make_remote(tmp_path, {"sectors.yaml": CONFIG})
    follow = ("--gitops", "--repository", str(tmp_path / "remote.git"), "--interval", "1")
    with Program(sandbox, tmp_path / "none", *follow) as program:
        program.until_ready()
        assert world.targets()["primary-small"] == 0
        wanted = CONFIG.replace("{size: small, min_capacity: 0", "{size: small, min_capacity: 4")
        commit = committed(work, wanted)

        wait_until(program, lambda: status(program)["config"]["commit"] == commit)
        wait_until(program, lambda: world.targets()["primary-small"] == 4)
        reloaded = program.until_event("config_reloaded", lambda e: e["config_commit"] == commit)
        assert reloaded["file"] == f"sectors.yaml@{commit[:12]}"
        assert (
            f'fleet_reconciler_config_commit{{commit="{commit}"}} 1.0' in program.get("/metrics")[1]
        )

        work_on_an_invalid_head(program, world, work, commit)
        end_of_its_process_ends_nothing_else(program)
        ends_with_its_parent(program)


def work_on_an_invalid_head(program: Program, world: World, work: Path, valid: str) -> None:
    """The last valid config stays in force, in a new process too, and the fault is shown."""
    committed(work, CONFIG + "nonsense: 1\n")
    wait_until(program, lambda: not status(program)["config"]["valid"])
    shown = status(program)["config"]
    assert shown["commit"] == valid
    assert "nonsense" in shown["faults"][0]
    assert world.targets()["primary-small"] == 4


def end_of_its_process_ends_nothing_else(program: Program) -> None:
    """What ends the second loop, the kernel's memory limit say, must not end the capacity loop."""
    (first,) = second_loops(program)
    cycle = status(program)["cycle"]["number"]
    os.kill(first, signal.SIGKILL)
    ended = program.until_event("gitops_ended", lambda _: True)
    assert ended["reason"] == "was ended by signal 9"
    wait_until(program, lambda: status(program)["cycle"]["number"] > cycle)
    wait_until(program, lambda: second_loops(program) not in ([], [first]))


def ends_with_its_parent(program: Program) -> None:
    """A second loop without a capacity loop would commit and push with nobody watching."""
    (child,) = second_loops(program)
    limit = str(1024 * 2**20)
    wait_until(program, lambda: limit in Path(f"/proc/{child}/limits").read_text())
    program.process.kill()
    until("the second loop ends with its parent", lambda: not is_running(child))


def test_config_without_a_valid_version_in_git_ends_the_start(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    """A start without any config must say what is wrong with the one in git, and touch nothing."""
    make_remote(tmp_path, {"sectors.yaml": CONFIG + "nonsense: 1\n"})
    follow = ("--gitops", "--repository", str(tmp_path / "remote.git"))
    with Program(sandbox, tmp_path / "none", *follow) as program:
        assert program.process.wait(timeout=60) == 2
        assert "error: sectors.yaml:" in program.log_text
        assert "nonsense" in program.log_text
