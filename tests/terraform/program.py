"""The terraform program as tests run it: offline where a provider mirror is to be found."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

AWS_PROVIDER = Path("registry.terraform.io/hashicorp/aws")
_IMPLIED_MIRRORS = (
    Path.home() / ".terraform.d/plugins",
    Path("/usr/local/share/terraform/plugins"),
    Path("/usr/share/terraform/plugins"),
)
_ENVIRONMENT = dict(os.environ)  # noqa: TID251 - tests start the program that is installed here
_USUAL_ROOTS = ("/opt", "/usr/share", "/usr/local/share")


def _mirror_candidates() -> Iterator[Path]:
    """Folders that may hold providers: named, implied by Terraform, then found by search."""
    if named := _ENVIRONMENT.get("TF_PLUGIN_DIR"):
        yield Path(named)
    yield from _IMPLIED_MIRRORS
    for root in _USUAL_ROOTS:
        for pattern in ("*", "*/*"):
            yield from sorted(Path(root).glob(pattern))


def find_mirror() -> Path | None:
    """The folder above `registry.terraform.io` that holds the AWS provider."""
    return next((path for path in _mirror_candidates() if (path / AWS_PROVIDER).is_dir()), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class TerraformProgram:
    """Runs terraform in a folder, without colours, questions or anybody's CLI settings."""

    binary: str
    mirror: Path | None

    def run(self, folder: Path, *arguments: str, **extra: str) -> subprocess.CompletedProcess[str]:
        """One call; `extra` is more environment; output and exit code are the caller's to judge."""
        environment = {
            **{key: value for key, value in _ENVIRONMENT.items() if key in ("PATH", "HOME")},
            "TF_IN_AUTOMATION": "1",
            "TF_INPUT": "0",
            "TF_CLI_ARGS": "-no-color",
            "CHECKPOINT_DISABLE": "1",
            **extra,
        }
        return subprocess.run(
            [self.binary, *arguments],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=280,
        )

    def init(self, folder: Path) -> None:
        """Initialise without a backend; skips the test where no provider is to be had."""
        offline = [f"-plugin-dir={self.mirror}"] if self.mirror else []
        done = self.run(folder, "init", "-backend=false", *offline)
        if done.returncode and not self.mirror:
            pytest.skip(
                "no AWS provider: no mirror folder has it (TF_PLUGIN_DIR names one),"
                f" and init could not load it: {done.stderr.strip()[-300:]}"
            )
        assert done.returncode == 0, done.stderr


def find_terraform() -> TerraformProgram:
    """The program on the path; skips the test when there is none."""
    binary = shutil.which("terraform")
    if binary is None:
        pytest.skip("the terraform program is not on the PATH")
    return TerraformProgram(binary=binary, mirror=find_mirror())
