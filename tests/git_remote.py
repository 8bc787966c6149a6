"""A git remote on this machine and the person who works with it."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

GIT_TIMEOUT_SECONDS = 60


def git(directory: Path, *arguments: str) -> str:
    """What git prints in a directory, as a user with an identity of their own."""
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
    done = subprocess.run(
        ["git", *identity, *arguments],
        cwd=directory,
        check=True,
        capture_output=True,
        text=True,
        timeout=GIT_TIMEOUT_SECONDS,
    )
    return done.stdout.strip()


def write_and_push(work: Path, path: str, text: str, subject: str) -> str:
    """Commit one file as a person would and push it; the commit's name."""
    file = work / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    git(work, "add", "--", path)
    git(work, "commit", "-qm", subject)
    git(work, "push", "-q", "origin", "HEAD:main")
    return git(work, "rev-parse", "HEAD")


def make_remote(directory: Path, files: Mapping[str, str]) -> Path:
    """A bare `remote.git` with one commit on main, and a person's clone of it, returned."""
    git(directory, "init", "-q", "--bare", "-b", "main", "remote.git")
    git(directory, "clone", "-q", "remote.git", "work")
    work = directory / "work"
    git(work, "checkout", "-q", "-B", "main")
    for path, text in files.items():
        (work / path).parent.mkdir(parents=True, exist_ok=True)
        (work / path).write_text(text)
    git(work, "add", "--all")
    git(work, "commit", "-qm", "First config")
    git(work, "push", "-q", "origin", "HEAD:main")
    return work
