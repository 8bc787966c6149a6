"""AWS providers that stay for many commands of Terraform.

Terraform starts the provider for each command, and for each `run` of `terraform test`: its start
and its schemas take seconds of CPU time. A provider under a debugger is one that Terraform attaches
to instead, and leaves alone. It is the same program; its start happens once, and Terraform sees the
schemas of the types that are used here (`named_schemas.py`).
"""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from reconciler.adapters.terraform.cli import PROGRAM_VARIABLE
from reconciler.sandbox import control_plane
from reconciler.sandbox.processes import stop_child

_DIES_WITH_US = Path(control_plane.__path__[0]) / "child.py"
_ROOT = Path(__file__).parents[2]
_NAMED_SCHEMAS = Path(__file__).with_name("named_schemas.py")
_NAMING = ("terraform", "templates", "tests")
_OF_NAMES = frozenset({".hcl", ".j2", ".py", ".tf"})
_TYPE = re.compile(r"\baws_[a-z0-9_]+")
_BINARY = "hashicorp/aws/*/*/terraform-provider-aws*"
_ATTACH = "TF_REATTACH_PROVIDERS"
_ATTACHING_PROGRAM = Path(__file__).with_name("attaching_terraform.sh")
_CERTIFICATES = "AWS_CA_BUNDLE"
"""With it a provider cannot be configured a second time; the emulated AWS needs none."""
_KEPT = 2
"""One for what needs no account, one for the account of the tests that run."""
_running: dict[frozenset[tuple[str, str]], tuple[subprocess.Popen[bytes], str]] = {}
_one_by_one = threading.Lock()


def attaching(installed: Path, settings: Mapping[str, str]) -> dict[str, str]:
    """The environment with which Terraform attaches to a provider that stays.

    Args:
        installed: Where providers are: `.terraform/providers` of an initialised root, or a mirror.
        settings: The provider's own environment, which says what account it talks to. A root with
            several `provider` blocks cannot attach: it would need one process for each.

    Returns:
        Nothing where no provider is installed, or which of several versions it is not known.
    """
    binaries = [each.resolve() for each in installed.glob(f"*/{_BINARY}")]
    if len(binaries) != 1:
        return {}
    settings = {name: value for name, value in settings.items() if name != _CERTIFICATES}
    key = frozenset({**settings, "": str(binaries[0])}.items())
    with _one_by_one:
        child, where = _running.pop(key, (None, ""))
        if child is None or child.poll() is not None:
            stop(_KEPT - 1)
            child, where = _started(binaries[0], settings)
        _running[key] = child, where
    return {_ATTACH: where}


def program_that_attaches(mirror: Path, settings: Mapping[str, str]) -> dict[str, str]:
    """The environment with which `reconciler ci` starts a Terraform that attaches.

    The program keeps Terraform's own variables from it, so it is given a stand-in for Terraform
    that sets this one. `init` does not attach: it installs the provider as ever.

    Args:
        mirror: The directory that providers are installed from.
        settings: As for `attaching`.
    """
    where = attaching(mirror, settings).get(_ATTACH)
    if where is None:
        return {}
    return {PROGRAM_VARIABLE: str(_ATTACHING_PROGRAM), "ATTACHED_PROVIDERS": where}


def stop(kept: int = 0) -> None:
    """Stop all of them except the `kept` ones that were used last."""
    while len(_running) > kept:
        stop_child(_running.pop(next(iter(_running)))[0])


def _started(binary: Path, settings: Mapping[str, str]) -> tuple[subprocess.Popen[bytes], str]:
    """The process, and what Terraform has to be told of it."""
    child = subprocess.Popen(
        [
            *(sys.executable, "-I", str(_DIES_WITH_US), str(os.getpid())),
            *(sys.executable, "-I", str(_NAMED_SCHEMAS), str(_DIES_WITH_US), str(binary)),
            *_types(),
        ],
        env=dict(settings),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert child.stdout is not None
    for line in child.stdout:
        told = re.search(rf"{_ATTACH}='(.*)'", line.decode())
        if told is not None:
            return child, told[1]
    raise AssertionError(f"{binary.name} -debug ended with {child.wait()}")


@cache
def _types() -> list[str]:
    """What files of the project name that can be a type of the AWS provider."""
    everything = (path for folder in _NAMING for path in (_ROOT / folder).rglob("*"))
    texts = (path.read_text("utf-8") for path in everything if path.suffix in _OF_NAMES)
    return sorted({name for text in texts for name in _TYPE.findall(text)})
