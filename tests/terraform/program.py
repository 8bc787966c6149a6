"""The terraform program as tests run it: offline where a provider mirror is to be found."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from reconciler.adapters.terraform.mirror import VARIABLE, provider_sources
from tests.terraform import kept_provider

_ENVIRONMENT = dict(os.environ)  # noqa: TID251 - tests start the program that is installed here
_NO_PROVIDER = ("init", "fmt")
_PASSED_ON = ("PATH", "HOME", "TF_CLI_CONFIG_FILE", "GOGC", VARIABLE)


def _environment() -> dict[str, str]:
    """What terraform gets to see: nothing of AWS, no CLI settings that do not exist."""
    seen = {key: _ENVIRONMENT[key] for key in _PASSED_ON if key in _ENVIRONMENT}
    if not Path(seen.get("TF_CLI_CONFIG_FILE", "")).is_file():
        seen.pop("TF_CLI_CONFIG_FILE", None)
    return {
        **seen,
        "TF_IN_AUTOMATION": "1",
        "TF_INPUT": "0",
        "TF_CLI_ARGS": "-no-color",
        "CHECKPOINT_DISABLE": "1",
    }


def mirror_directory() -> Path | None:
    """The provider mirror of this machine, None when it has none."""
    directories = provider_sources(_environment(), lambda _: False).directories
    return directories[0] if directories else None


def mirror_option() -> list[str]:
    """The option of `terraform init` that names a provider mirror, if there is one."""
    mirror = mirror_directory()
    return [f"-plugin-dir={mirror}"] if mirror else []


@dataclass(frozen=True, slots=True, kw_only=True)
class TerraformProgram:
    """Runs terraform in a folder, without colours or questions."""

    binary: str

    def run(
        self, folder: Path, *arguments: str, stdin: str = "", **extra: str
    ) -> subprocess.CompletedProcess[str]:
        """One call; `extra` is more environment; output and exit code are the caller's to judge.

        The root has at most one `provider` block for AWS: its provider stays for later calls.
        """
        environment = _environment() | extra
        if arguments[0] not in _NO_PROVIDER:
            data = folder / extra.get("TF_DATA_DIR", ".terraform")
            account = {key: value for key, value in extra.items() if key.startswith("AWS_")}
            environment |= kept_provider.attaching(data / "providers", account)
        return subprocess.run(
            [self.binary, *arguments],
            cwd=folder,
            env=environment,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )

    def init(self, folder: Path) -> None:
        """Initialise without a backend; skips the test where no provider is to be had."""
        offline = mirror_option()
        done = self.run(folder, "init", "-backend=false", *offline)
        if done.returncode and not offline:
            pytest.skip(
                f"no AWS provider: no mirror has it ({VARIABLE} names one), and terraform init"
                f" could not load it: {done.stderr.strip()[-300:]}"
            )
        assert done.returncode == 0, done.stderr


def find_terraform() -> TerraformProgram:
    """The program on the path; skips the test when there is none."""
    binary = shutil.which("terraform")
    if binary is None:
        pytest.skip("the terraform program is not on the PATH")
    return TerraformProgram(binary=binary)
