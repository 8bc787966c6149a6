"""The platform team's git repository: a bare remote, and a clone in which people commit."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from reconciler.demo.commands import git


@dataclass(frozen=True, slots=True)
class ConfigRepository:
    """A remote on disk and one person's clone."""

    remote: Path
    clone: Path
    env: Mapping[str, str]

    def make(self) -> None:
        """Create both, empty."""
        parent = self.remote.parent
        git(
            ["init", "--quiet", "--bare", "--initial-branch=main", str(self.remote)],
            parent,
            self.env,
        )
        git(["clone", "--quiet", str(self.remote), str(self.clone)], parent, self.env)
        git(["checkout", "--quiet", "-B", "main"], self.clone, self.env)

    def commit(self, path: str, text: str, message: str) -> str:
        """Write a file, commit and push it; return the short commit id."""
        (self.clone / path).write_text(text)
        git(["add", path], self.clone, self.env)
        git(["commit", "--quiet", "-m", message], self.clone, self.env)
        git(["push", "--quiet", "origin", "main"], self.clone, self.env)
        return self.head()

    def pull(self) -> str:
        """Pull what others pushed; return the short commit id."""
        git(["pull", "--quiet", "--ff-only", "origin", "main"], self.clone, self.env)
        return self.head()

    def head(self) -> str:
        """Return the short id of the newest commit."""
        return git(["rev-parse", "--short", "HEAD"], self.clone, self.env)

    def log(self) -> list[str]:
        """Return one line per commit, newest first."""
        return git(["log", "--format=%h %an: %s"], self.clone, self.env).splitlines()

    def files_of_head(self) -> list[str]:
        """Return the files that the newest commit changed."""
        return git(["show", "--format=", "--name-only", "HEAD"], self.clone, self.env).splitlines()
