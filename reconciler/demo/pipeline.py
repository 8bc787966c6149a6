"""The CI pipeline of the config repository, on this machine: a fresh checkout, plan, apply."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reconciler.demo.commands import git, reconciler


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Runs what a CI runner does according to `ci/`."""

    remote: Path
    workspace: Path
    env: Mapping[str, str]

    def checkout(self, name: str) -> Path:
        """Return a fresh checkout of main."""
        where = self.workspace / name
        git(["clone", "--quiet", str(self.remote), str(where)], self.workspace, self.env)
        return where

    def plan(self, checkout: Path) -> Mapping[str, Any]:
        """Run `reconciler ci plan` and return its machine-readable report."""
        done = reconciler(
            ["ci", "plan", "--dir", "terraform", "--out", "plan", "--output", "json"],
            checkout,
            self.env,
        )
        report: Mapping[str, Any] = json.loads(done.out)
        return report

    def apply(self, checkout: Path) -> str:
        """Run `reconciler ci apply` of that plan and return its message."""
        done = reconciler(
            ["ci", "apply", "--dir", "terraform", "--plan", "plan", "--output", "json"],
            checkout,
            self.env,
        )
        return str(json.loads(done.out)["message"])

    def is_clean(self, checkout: Path) -> bool:
        """Return whether another plan of the same commit changes nothing (exit code 0, not 2)."""
        done = reconciler(
            ["ci", "plan", "--dir", "terraform", "--out", "last", "--detailed-exitcode"],
            checkout,
            self.env,
            codes=(0, 2),
        )
        return done.code == 0
