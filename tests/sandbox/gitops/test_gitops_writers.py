"""Several writers, moved remotes, damage and full disks: nothing lost, nothing twice, an end."""

import os
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from reconciler.adapters.git.repository import GitRepository
from reconciler.adapters.git.settings import GitSettings
from reconciler.loops.second_loop.gitops_loop import GitopsLoop, GitopsSettings
from reconciler.model.errors import NotFound, ReconcilerError
from tests.full_proofs import rounds
from tests.git_remote import git, make_remote, write_and_push
from tests.sandbox.gitops.loop_world import ImmediateClock, config

pytestmark = [pytest.mark.sandbox, pytest.mark.timeout(1800)]

SETTINGS = GitopsSettings(version="1.0.0")
TIMEOUT_SECONDS = 120


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A person's clone of a config repository."""
    return make_remote(tmp_path, {"sectors.yaml": config(5), "README.md": "ours\n"})


def remote_of(work: Path) -> Path:
    """The bare repository."""
    return work.parent / "remote.git"


class Writer:
    """A second loop with a copy of its own, closed at the end."""

    def __init__(self, work: Path, directory: Path | None = None) -> None:
        self.repository = GitRepository(GitSettings(url=str(remote_of(work)), directory=directory))
        self.loop = GitopsLoop(self.repository, ImmediateClock(), SETTINGS)

    def __enter__(self) -> GitopsLoop:
        return self.loop

    def __exit__(self, *_: object) -> None:
        self.repository.close()


def subjects(work: Path) -> list[str]:
    """Subjects at the remote, newest first."""
    return git(remote_of(work), "log", "--format=%s", "main").splitlines()


def _push_as_a_person(clone: Path, number: int) -> None:
    """A colleague's commit, again on top of what came meanwhile until it is in."""
    (clone / f"notes-{number}").write_text("text\n")
    git(clone, "add", "--all")
    git(clone, "commit", "-qm", f"Note {number}")
    for _ in range(20):
        git(clone, "pull", "-q", "--rebase", "origin", "main")
        try:
            git(clone, "push", "-q", "origin", "HEAD:main")
        except subprocess.CalledProcessError:
            continue
        return
    raise AssertionError("a person's push never got through")


def test_two_writers_and_a_person_at_once_lose_and_repeat_nothing(
    work: Path, closing_lines: list[str]
) -> None:
    """Two replicas and colleagues push at the same moment, round after round."""
    count = rounds(8, 50)
    git(work.parent, "clone", "-q", "remote.git", "other")
    other = work.parent / "other"
    attempts = []
    with Writer(work) as one, Writer(work) as two:
        for number in range(count):
            git(work, "pull", "-q", "--rebase", "origin", "main")
            write_and_push(work, "sectors.yaml", config(number + 10), f"Round {number}")
            failures: list[BaseException] = []
            barrier = threading.Barrier(3)

            def turn(loop: GitopsLoop) -> None:
                barrier.wait(timeout=60)  # noqa: B023 - joined below
                try:
                    attempts.append(loop.once().attempts)
                except ReconcilerError as error:
                    failures.append(error)  # noqa: B023 - joined below

            def person(number: int = number) -> None:
                barrier.wait(timeout=60)  # noqa: B023 - joined below
                _push_as_a_person(other, number)

            threads = [threading.Thread(target=turn, args=(loop,)) for loop in (one, two)]
            threads.append(threading.Thread(target=person))
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(timeout=TIMEOUT_SECONDS)
            assert failures == []
        quiet = [status.state for loop in (one, two) for status in loop.once().clusters]
    log = subjects(work)
    assert [s for s in log if s.startswith("Round")] == [f"Round {n}" for n in range(count)][::-1]
    assert [s for s in log if s.startswith("Note")] == [f"Note {n}" for n in range(count)][::-1]
    rendered = [s for s in log if s.startswith("Render")]
    assert len(rendered) == count
    assert quiet == ["unchanged", "unchanged"]
    assert max(attempts) <= SETTINGS.attempts_max
    closing_lines.append(
        f"{count} rounds, {len(log)} commits: {len(rendered)} renders, none lost, none twice;"
        f" turns taken again {sum(attempts) - len(attempts)} times, at most {max(attempts)}"
    )


def test_force_pushed_remote_is_rendered_as_it_is_now(work: Path) -> None:
    """History that was rewritten must be followed, not fought."""
    with Writer(work) as loop:
        loop.once()
        git(work, "commit", "-q", "--amend", "-m", "Another first config")
        git(work, "push", "-q", "--force", "origin", "HEAD:main")
        report = loop.once()
        assert [s.state for s in report.clusters] == ["committed"]
        assert loop.once().clusters[0].state == "unchanged"
    assert subjects(work)[1:] == ["Another first config"]


def test_remote_forced_between_fetch_and_push_is_not_overwritten(work: Path) -> None:
    """A push on top of history that somebody just took back would bring it back."""

    class Forced(GitRepository):
        moved = False

        def push(self, commit: object, branch: str | None = None) -> None:
            if not self.moved:
                self.moved = True
                git(work, "commit", "-q", "--amend", "-m", "Taken back")
                git(work, "push", "-q", "--force", "origin", "HEAD:main")
            super().push(commit, branch)  # type: ignore[arg-type]

    port = Forced(GitSettings(url=str(remote_of(work))))
    report = GitopsLoop(port, ImmediateClock(), SETTINGS).once()
    port.close()
    assert (report.attempts, subjects(work)[1:]) == (2, ["Taken back"])


def test_branch_deleted_and_made_again_is_followed_again(work: Path) -> None:
    """A branch that was deleted by mistake comes back: nobody should have to restart a pod."""
    with Writer(work) as loop:
        loop.once()
        git(remote_of(work), "update-ref", "-d", "refs/heads/main")
        with pytest.raises(NotFound, match="branch main"):
            loop.once()
        write_and_push(work, "sectors.yaml", config(7), "Made again")
        assert loop.once().clusters[0].state == "committed"
        assert loop.once().clusters[0].state == "unchanged"
    assert subjects(work)[1:] == ["Made again", "First config"]


DAMAGES = {
    "objects gone": "rm -rf objects",
    "objects cut": 'find objects -type f -exec sh -c \'chmod u+w "$1" && : > "$1"\' _ {} \\;',
    "head gone": "rm -f HEAD",
    "head nonsense": "echo nonsense > HEAD",
    "config nonsense": "echo '[core' > config",
    "refs gone": "rm -rf refs packed-refs",
    "shallow nonsense": "echo nonsense > shallow",
    "locks left": "touch shallow.lock config.lock HEAD.lock reconciler-index.lock",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_copy_is_made_anew(work: Path, tmp_path: Path, damage: str) -> None:
    """A power cut in the middle of a fetch must cost one more fetch, not an incident."""
    copy = tmp_path / "copy.git"

    def broken() -> None:
        subprocess.run(["sh", "-c", DAMAGES[damage]], cwd=copy, check=True, timeout=60)
        git(work, "pull", "-q", "--rebase", "origin", "main")

    with Writer(work, copy) as loop:
        loop.once()
        broken()
        write_and_push(work, "sectors.yaml", config(8), "While running")
        assert loop.once().clusters[0].state == "committed"
        broken()
    write_and_push(work, "sectors.yaml", config(9), "While stopped")
    with Writer(work, copy) as again:
        assert again.once().clusters[0].state == "committed"
        assert again.once().clusters[0].state == "unchanged"
    assert len([s for s in subjects(work) if s.startswith("Render")]) == 3


FULL = """
import resource, sys
sys.dont_write_bytecode = True  # Python would keep modules that are cut off, for all later runs
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
sys.argv = ["reconciler", "gitops", "--once", *sys.argv[2:]]
from reconciler.cli.main import main
main()
"""


def _gitops(work: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments, "--repository", str(remote_of(work))],
        env=dict(os.environ),  # noqa: TID251 - the process needs PATH and HOME
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )


def test_files_that_cannot_grow_end_in_one_line_and_the_next_run_recovers(
    work: Path, tmp_path: Path
) -> None:
    """A quota that is used up must be named, push nothing, and be no reason to clean up by hand."""
    before = subjects(work)
    clone = ("--clone", str(tmp_path / "copy.git"))
    for limit in (0, 64, 300, 700):
        done = _gitops(work, "-c", FULL, str(limit), *clone)
        assert done.returncode == 1, (limit, done.stdout, done.stderr)
        assert done.stderr.count("\n") == 1, (limit, done.stderr)
        assert "Traceback" not in done.stderr
    assert subjects(work) == before
    done = _gitops(work, "-m", "reconciler", "gitops", "--once", *clone)
    assert done.returncode == 0, done.stderr
    assert len([s for s in subjects(work) if s.startswith("Render")]) == 1


def _small_disk(directory: Path) -> bool:
    """Whether a file system of 96 KiB could be mounted there."""
    directory.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=96k", "tmpfs", str(directory)],
        capture_output=True,
        timeout=60,
        check=False,
    )
    return done.returncode == 0


def test_full_disk_is_named_and_recovered_from(work: Path, tmp_path: Path) -> None:
    """A node whose disk is full must say so, and go on by itself once there is room."""
    disk = tmp_path / "disk"
    if not _small_disk(disk):
        pytest.skip("needs the right to mount a small file system (root)")
    try:
        write_and_push(work, "big", "x" + os.urandom(200_000).hex(), "Too big for the disk")
        with Writer(work, disk / "copy.git") as loop:
            with pytest.raises(ReconcilerError, match=r"no space|cannot be written") as caught:
                loop.once()
            assert "--clone" in str(caught.value)
            grown = ["mount", "-o", "remount,size=64m", str(disk)]
            subprocess.run(grown, check=True, timeout=60)
            assert loop.once().clusters[0].state == "committed"
    finally:
        subprocess.run(["umount", str(disk)], check=True, timeout=60)


def test_submodules_and_links_are_left_alone(work: Path) -> None:
    """A submodule must not be fetched, and a link is no way out of the repository."""
    (work / "outside").symlink_to("/etc")
    (work / "linked.yaml").symlink_to("/etc/passwd")
    git(work, "add", "--all")
    commit = git(work, "rev-parse", "HEAD")
    git(work, "update-index", "--add", "--cacheinfo", f"160000,{commit},vendored")
    git(work, "commit", "-qm", "A submodule and links")
    git(work, "push", "-q", "origin", "HEAD:main")
    repository = GitRepository(GitSettings(url=str(remote_of(work))))
    settings = GitopsSettings(
        version="1.0.0", configs=("sectors.yaml", "linked.yaml"), output="out"
    )
    linked = GitopsSettings(version="1.0.0", configs=("linked.yaml",))
    assert settings.configs
    report = GitopsLoop(repository, ImmediateClock(), SETTINGS).once()
    assert report.clusters[0].state == "committed"
    status = GitopsLoop(repository, ImmediateClock(), linked).once().clusters[0]
    assert status.state == "missing"
    assert "linked.yaml: is a symbolic link" in status.detail
    repository.close()
    tree = git(remote_of(work), "ls-tree", "main").splitlines()
    kept = {line.split()[-1]: line.split()[0] for line in tree}
    assert (kept["vendored"], kept["outside"]) == ("160000", "120000")


def test_link_where_the_output_belongs_is_refused(work: Path) -> None:
    """A link that was not rendered is neither written through nor replaced."""
    (work / "terraform").mkdir()
    (work / "terraform" / "main.tf").symlink_to("../README.md")
    git(work, "add", "--all")
    git(work, "commit", "-qm", "A link in the output")
    git(work, "push", "-q", "origin", "HEAD:main")
    with Writer(work) as loop:
        (status,) = loop.once().clusters
    assert status.state == "invalid"
    assert "main.tf: is a symbolic link" in status.detail
    git(work, "pull", "-q", "--rebase", "origin", "main")
    assert (work / "README.md").read_text() == "ours\n"
    assert (work / "terraform" / "main.tf").is_symlink()


def test_cluster_that_cannot_be_rendered_holds_up_no_other(work: Path) -> None:
    """A link, an odd or missing name, a huge file: one team's trouble, not everybody's."""
    clusters = work / "clusters"
    for name in ("good", "linked", "big", "nameless", "odd\nFleet-Reconciler-Config: abc"):
        (clusters / name).mkdir(parents=True)
        (clusters / name / "sectors.yaml").write_text(config(3, name.split()[0]))
    (clusters / "linked" / "terraform").symlink_to("../good")
    (clusters / "big" / "sectors.yaml").write_text("# " + "x" * 5_000_000)
    nameless = config(3).removeprefix("cluster: one\n")
    (clusters / "nameless" / "sectors.yaml").write_text(nameless)
    git(work, "add", "--all")
    git(work, "commit", "-qm", "Five clusters")
    git(work, "push", "-q", "origin", "HEAD:main")
    repository = GitRepository(GitSettings(url=str(remote_of(work))))
    settings = GitopsSettings(version="1.0.0", configs=("clusters/*/sectors.yaml",))
    loop = GitopsLoop(repository, ImmediateClock(), settings)
    report = loop.once()
    found = {s.target.config_path.split("/")[1].split()[0]: s for s in report.clusters}
    states = {name: status.state for name, status in found.items()}
    assert states == dict.fromkeys(("big", "linked", "nameless", "odd"), "invalid") | {
        "good": "committed"
    }
    assert "share a name" in found["linked"].detail
    assert "more than the limit" in found["big"].detail
    assert "--cluster-name" in found["nameless"].detail
    assert "is not a path" in found["odd"].detail
    assert report.exit_code == 2
    assert loop.once().branch == ""
    repository.close()


def _cpu_seconds() -> float:
    own, children = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def test_fifty_unchanged_clusters_cost_no_terraform_no_commit_no_push(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, closing_lines: list[str]
) -> None:
    """A poll every half minute over all teams must be next to nothing."""
    bait, marker = tmp_path / "bin", tmp_path / "terraform-was-started"
    bait.mkdir()
    (bait / "terraform").write_text(f"#!/bin/sh\ntouch {marker}\nexit 1\n")
    (bait / "terraform").chmod(0o755)
    path = os.environ["PATH"]  # noqa: TID251 - the bait goes in front
    monkeypatch.setenv("PATH", f"{bait}{os.pathsep}{path}")
    configs = {f"clusters/c{n:02}/sectors.yaml": config(3, f"c{n:02}") for n in range(50)}
    work = make_remote(tmp_path, configs)
    settings = GitopsSettings(version="1.0.0", configs=("clusters/*/sectors.yaml",))

    class Counting(GitRepository):
        pushes = 0

        def push(self, commit: object, branch: str | None = None) -> None:
            self.pushes += 1
            super().push(commit, branch)  # type: ignore[arg-type]

    def opened() -> tuple[Counting, GitopsLoop]:
        port = Counting(GitSettings(url=str(remote_of(work))))
        return port, GitopsLoop(port, ImmediateClock(), settings)

    port, loop = opened()
    assert {s.state for s in loop.once().clusters} == {"committed"}
    loop.once()
    fresh, another = opened()
    log, costs = subjects(work), []
    git(work, "pull", "-q", "--rebase", "origin", "main")
    for name, one, moves in (
        ("poll, nothing new", loop, False),
        ("poll after a commit of somebody", loop, True),
        ("first turn of a new process", another, False),
    ):
        if moves:
            write_and_push(work, "README.md", "more\n", "Unrelated")
            log = ["Unrelated", *log]
        wall, cpu = time.monotonic(), _cpu_seconds()
        report = one.once()
        costs.append(f"{name}: {_cpu_seconds() - cpu:.2f} s CPU, {time.monotonic() - wall:.2f} s")
        assert (len(report.clusters), {s.state for s in report.clusters}) == (50, {"unchanged"})
    assert (port.pushes, fresh.pushes, subjects(work)) == (1, 0, log)
    assert not marker.exists()
    port.close()
    fresh.close()
    closing_lines.append("50 clusters; " + "; ".join(costs))
