"""A mirror of providers that Terraform installs from in no time, for the length of a run of tests.

Each `terraform init` reads the provider from end to end for its checksum: 700 MB. The programs of
this mirror are scripts that become the ones of the machine's own mirror.
"""

import os
import shlex
import shutil
import tempfile
from pathlib import Path

from reconciler.adapters.terraform.mirror import PROVIDER, VARIABLE, provider_sources
from reconciler.model.errors import ToolError

_PROGRAM = "terraform-provider-*"
_made: list[Path] = []


def prepare() -> None:
    """Put it before the mirror that this machine has, for all that the tests start."""
    try:
        directories = provider_sources(os.environ, lambda _: False).directories  # noqa: TID251 - for what the tests start
    except ToolError:
        return  # the tests that need a mirror say what is wrong with it
    programs = [p for d in directories[:1] for p in (d / PROVIDER).glob(f"*/*/{_PROGRAM}")]
    if not programs or not all(p.is_file() and os.access(p, os.X_OK) for p in programs):
        return  # packed ones, which Terraform unpacks
    mirror = Path(tempfile.mkdtemp(prefix="mirror-"))
    _made.append(mirror)
    for program in programs:
        script = mirror / program.relative_to(directories[0])
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(f'#!/bin/sh\nexec {shlex.quote(str(program))} "$@"\n', encoding="utf-8")
        script.chmod(0o755)
    os.environ[VARIABLE] = str(mirror)  # noqa: TID251 - for what the tests start


def remove() -> None:
    """Remove it."""
    while _made:
        shutil.rmtree(_made.pop(), ignore_errors=True)
