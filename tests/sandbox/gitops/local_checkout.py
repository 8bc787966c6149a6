"""A git checkout whose root module has terraform_data only, and `reconciler ci` in it."""

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests import command
from tests.git_remote import git

TIMEOUT_SECONDS = 120
ROOT = """
variable "text" {
  type = string
}
resource "terraform_data" "thing" {
  input = var.text
}
"""
SLOW = ROOT + (
    'resource "terraform_data" "slow" {\n  provisioner "local-exec" {\n'
    '    command = "touch started; exec sleep 60"\n  }\n}\n'
)

WRITTEN_BY_HAND = ("main.tf", "backend.tf", "x.auto.tfvars.json", "fleets.auto.tfvars.json")
"""Files of the root module here that no render wrote, and that the pipeline allows."""


def reconciler(
    *arguments: str, cwd: Path, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """The program as a pipeline calls it."""
    if arguments[1] in {"plan", "apply", "drift", "unlock"}:
        arguments += tuple(f"--allow-file={each}" for each in WRITTEN_BY_HAND)
    return command.reconciler(
        *arguments,
        cwd=cwd,
        env={**os.environ, **(environment or {})},  # noqa: TID251 - the process inherits it
        timeout_seconds=TIMEOUT_SECONDS,
    )


def new_checkout(folder: Path) -> Path:
    """A git checkout with a root module in `terraform/`."""
    directory = folder / "checkout"
    (directory / "terraform").mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main", "checkout")
    (directory / ".gitignore").write_text(".terraform/\n.terraform.lock.hcl\n*.tfstate*\n")
    (directory / "terraform" / "main.tf").write_text(ROOT)
    set_text(directory, "one")
    return directory


def set_config(
    checkout: Path, cluster: str = "cluster: one\n", rendered: str = '{"fleets": {}}'
) -> None:
    """Commit a config with a fleet that is not rendered."""
    config = f"{cluster}sectors: {{primary: {{kind: memory, fleets: [{{size: small}}]}}}}\n"
    (checkout / "sectors.yaml").write_text(config)
    (checkout / "terraform" / "fleets.auto.tfvars.json").write_text(rendered)
    set_text(checkout, "one")


def set_text(checkout: Path, text: str) -> str:
    """Commit another value; the commit's name."""
    values = checkout / "terraform" / "x.auto.tfvars.json"
    values.write_text(json.dumps({"text": text}))
    git(checkout, "add", "--all")
    git(checkout, "commit", "-qm", f"Set {text}")
    return git(checkout, "rev-parse", "HEAD")


def planned(checkout: Path, *more: str) -> dict[str, Any]:
    """A plan that was accepted; its report."""
    done = reconciler("ci", "plan", "--dir", "terraform", "--out", "../plan", *more, cwd=checkout)
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def applied(checkout: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """The apply of the kept plan."""
    return reconciler("ci", "apply", "--dir", "terraform", "--plan", "../plan", *more, cwd=checkout)
