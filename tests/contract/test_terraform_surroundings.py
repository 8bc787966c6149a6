"""Terraform and its plugins named by a relative path: relative to here, not to the module."""

from pathlib import Path

import pytest

from reconciler.adapters.terraform.cli import PROGRAM_VARIABLE, TerraformCli
from reconciler.adapters.terraform.mirror import VARIABLE
from reconciler.adapters.terraform.settings import TerraformSettings
from reconciler.model.errors import InputError, ToolError


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with a root module, in which the test runs."""
    made = tmp_path / "checkout"
    (made / ".git").mkdir(parents=True)
    (made / "terraform").mkdir()
    monkeypatch.chdir(made)
    for name in ("HOME", "TF_CLI_CONFIG_FILE", "AWS_CONFIG_FILE", VARIABLE):
        monkeypatch.delenv(name, raising=False)
    return made


def version(folder: Path) -> str:
    """What a stand-in for Terraform in a folder answers through the port."""
    folder.mkdir(parents=True)
    program = folder / "terraform"
    program.write_text('#!/bin/sh\necho \'{"terraform_version": "1.11.4"}\'\n')
    program.chmod(0o755)
    return TerraformCli(TerraformSettings(directory=Path("terraform"))).version()


def test_relative_program_outside_of_the_checkout_is_started(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was compared as if it were relative to the root module, and refused."""
    monkeypatch.setenv(PROGRAM_VARIABLE, "../bin/terraform")
    assert version(checkout.parent / "bin") == "1.11.4"


def test_relative_program_in_the_checkout_is_refused(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The repository would decide what runs."""
    monkeypatch.setenv(PROGRAM_VARIABLE, "bin/terraform")
    with pytest.raises(ToolError, match="lies in the checkout"):
        version(checkout / "bin")


@pytest.mark.parametrize(("named", "refused"), [("../mirror", False), ("mirror", True)])
def test_relative_plugin_directory_is_relative_to_here(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, named: str, *, refused: bool
) -> None:
    """One beside the checkout was refused as if it lay in it."""
    (checkout / named / "registry.terraform.io").mkdir(parents=True)
    monkeypatch.setenv(VARIABLE, named)
    monkeypatch.setenv("PATH", str(checkout.parent / "bin"), prepend=":")
    if refused:
        with pytest.raises(InputError, match="lies in the checkout"):
            version(checkout.parent / "bin")
    else:
        assert version(checkout.parent / "bin") == "1.11.4"
