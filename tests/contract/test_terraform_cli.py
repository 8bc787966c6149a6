"""The Terraform port over the real program, with the built-in terraform_data resource only."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from zipfile import ZipFile

import pytest

from reconciler.adapters.terraform.cli import TerraformCli
from reconciler.adapters.terraform.settings import TerraformSettings
from reconciler.model.errors import Conflict, ToolError
from tests.terraform.needs import needs_terraform

ROOT = """
variable "text" {
  type    = string
  default = "one"
}
resource "terraform_data" "thing" {
  input = var.text
}
"""
SECRET_ROOT = """
variable "text" {
  default = "one"
}
resource "terraform_data" "x" {
  lifecycle {
    precondition {
      condition     = var.text == "two"
      error_message = "Key hunter2-hunter2 was refused."
    }
  }
}
"""
SLOW_ROOT = """
resource "terraform_data" "slow" {
  provisioner "local-exec" {
    command = "touch started; exec sleep 60"
  }
}
"""


def module(directory: Path, text: str = ROOT) -> TerraformCli:
    """A root module with this text, initialised."""
    directory.mkdir(exist_ok=True)
    (directory / "main.tf").write_text(text)
    cli = TerraformCli(TerraformSettings(directory=directory, stop_seconds=20))
    cli.init()
    return cli


@pytest.mark.terraform
@needs_terraform
class TestTerraform:
    """Each needs the program."""

    def test_plan_then_apply_then_plan_is_empty(self, tmp_path: Path) -> None:
        """The whole path that a pipeline takes."""
        cli = module(tmp_path / "root")
        assert cli.validate() == ()
        assert cli.state_version().serial == 0
        saved = cli.plan(str(tmp_path / "plan"))
        assert saved.changes
        assert cli.show_json(saved.file)["resource_changes"][0]["change"]["actions"] == ["create"]
        assert "1 added" in cli.apply(saved.file)
        state = cli.state_version()
        assert state.serial > 0
        assert state.lineage
        assert not cli.plan(str(tmp_path / "plan")).changes

    def test_plan_can_be_limited_to_some_resources(self, tmp_path: Path) -> None:
        """An apply in parts must not carry out a part that is not its turn."""
        two = ROOT + 'resource "terraform_data" "keyed" {\n  for_each = {"a b" = 1}\n}\n'
        cli = module(tmp_path / "root", two)
        address = 'terraform_data.keyed["a b"]'
        saved = cli.plan(str(tmp_path / "plan"), only=[address])
        changes = cli.show_json(saved.file)["resource_changes"]
        assert [change["address"] for change in changes] == [address]
        assert "1 added" in cli.apply(saved.file)
        rest = cli.show_json(cli.plan(str(tmp_path / "plan")).file)["resource_changes"]
        left = [each["address"] for each in rest if each["change"]["actions"] == ["create"]]
        assert left == ["terraform_data.thing"]

    def test_plan_file_is_readable_by_its_owner_only(self, tmp_path: Path) -> None:
        """A plan holds every value of the state, secrets included."""
        saved = module(tmp_path / "root").plan(str(tmp_path / "plan"))
        assert Path(saved.file).stat().st_mode & 0o077 == 0

    def test_configuration_of_a_saved_plan_is_shown(self, tmp_path: Path) -> None:
        """What a plan's JSON leaves out must be judged from what the plan was really made from."""
        folder = tmp_path / "root"
        (folder / "inner").mkdir(parents=True)
        (folder / "inner" / "x.tf.json").write_text("{}\n")
        cli = module(folder, ROOT + 'module "inner" {\n  source = "./inner"\n}\n')
        saved = cli.plan(str(tmp_path / "plan"))
        sources = cli.sources(saved.file)
        assert sources["m-/main.tf"].startswith(ROOT)
        assert sources["m-inner/x.tf.json"] == "{}\n"
        assert len(sources) == 2
        with pytest.raises(ToolError, match="is not a saved plan"):
            cli.sources(str(folder / "main.tf"))
        with ZipFile(saved.file) as zipped:
            entry = zipped.getinfo("tfconfig/m-/main.tf")
        with Path(saved.file).open("r+b") as stream:
            stream.seek(entry.header_offset + 30 + len(entry.filename))
            stream.write(b"\xff" * 20)
        with pytest.raises(ToolError, match="is not a saved plan"):
            cli.sources(saved.file)

    def test_half_made_resource_is_listed_and_taken_for_made(self, tmp_path: Path) -> None:
        """A fleet that an interrupted apply had made must not be replaced by the next one."""
        cli = module(tmp_path / "root")
        cli.apply(cli.plan(str(tmp_path / "plan")).file)
        assert cli.tainted() == ()
        subprocess.run(
            ["terraform", "taint", "terraform_data.thing"],
            cwd=tmp_path / "root",
            check=True,
            capture_output=True,
            timeout=240,
        )
        (found,) = cli.tainted()
        assert (found.address, found.type) == ("terraform_data.thing", "terraform_data")
        assert found.id
        cli.untaint(found.address)
        assert cli.tainted() == ()
        assert not cli.plan(str(tmp_path / "plan")).changes

    def test_lock_that_does_not_exist_is_said_so(self, tmp_path: Path) -> None:
        """A mistyped id must not look as if the lock were gone."""
        with pytest.raises(ToolError, match="unlock") as caught:
            module(tmp_path / "root").unlock("no-such-lock")
        assert "\x1b" not in str(caught.value)  # no colours: it is written to logs
        assert "the ID is in the error" in caught.value.hint

    def test_terraform_outlives_us_when_we_are_killed(self, tmp_path: Path) -> None:
        """Ended in the middle, it would leave a lock, and fleets that no state knows."""
        text = SLOW_ROOT.replace("sleep 60", "sh -c 'sleep 2; echo done; echo done >&2'")
        cli = module(tmp_path / "root", text)
        cli.plan(str(tmp_path / "plan"))
        program = (
            "import sys; from pathlib import Path;"
            "from reconciler.adapters.terraform.cli import TerraformCli;"
            "from reconciler.adapters.terraform.settings import TerraformSettings;"
            "TerraformCli(TerraformSettings(directory=Path(sys.argv[1]))).apply(sys.argv[2])"
        )
        folder = tmp_path / "root"
        with subprocess.Popen(
            [sys.executable, "-c", program, str(folder), str(tmp_path / "plan")],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process:
            until = f"until [ -e {folder}/started ]; do sleep 0.1; done"
            subprocess.run(["sh", "-c", until], timeout=240, check=True)
            process.kill()
        until = f"until grep -q terraform_data {folder}/terraform.tfstate 2>&-; do sleep 0.1; done"
        subprocess.run(["sh", "-c", until], timeout=240, check=True)
        assert not cli.plan(str(tmp_path / "again")).changes

    def test_stale_plan_is_a_conflict(self, tmp_path: Path) -> None:
        """A plan made before somebody else applied must not be carried out."""
        cli = module(tmp_path / "root")
        first = cli.plan(str(tmp_path / "first"))
        second = cli.plan(str(tmp_path / "second"))
        cli.apply(second.file)
        with pytest.raises(Conflict, match="stale"):
            cli.apply(first.file)

    def test_invalid_module_is_described_with_its_place(self, tmp_path: Path) -> None:
        """A reader must be sent to the line."""
        cli = module(tmp_path / "root")
        (tmp_path / "root" / "main.tf").write_text('resource "terraform_data" "x" {\n  no = 1\n}\n')
        (found,) = cli.validate()
        assert (found.severity, found.where) == ("error", "main.tf:2")

    def test_failed_plan_says_what_terraform_said(self, tmp_path: Path) -> None:
        """`exit status 1` alone sends people to the logs."""
        text = ROOT + 'data "terraform_remote_state" "x" {\n  backend = "local"\n  config = {}\n}\n'
        cli = module(tmp_path / "root", text)
        with pytest.raises(ToolError, match="Unable to find remote state"):
            cli.plan(str(tmp_path / "plan"))

    def test_secret_of_the_environment_is_masked(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A provider's error may quote the key it was refused for."""
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2-hunter2")
        cli = module(tmp_path / "root", SECRET_ROOT)
        with pytest.raises(ToolError) as caught:
            cli.plan(str(tmp_path / "plan"))
        assert "hunter2" not in str(caught.value)
        assert "refused" in str(caught.value)

    def test_extra_arguments_of_the_environment_do_not_change_the_plan(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """`TF_CLI_ARGS_plan=-destroy` in a runner would turn every plan into a destruction."""
        cli = module(tmp_path / "root")
        cli.apply(cli.plan(str(tmp_path / "plan")).file)
        monkeypatch.setenv("TF_CLI_ARGS_plan", "-destroy")
        again = TerraformCli(TerraformSettings(directory=tmp_path / "root"))
        assert not again.plan(str(tmp_path / "plan")).changes

    def test_missing_cli_config_file_is_no_trouble(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Images often name a config file that was never made."""
        monkeypatch.setenv("TF_CLI_CONFIG_FILE", str(tmp_path / "nowhere"))
        assert module(tmp_path / "root").version()[0].isdigit()

    def test_own_data_directory_leaves_a_persons_alone(self, tmp_path: Path) -> None:
        """A pipeline run must not reconfigure the backend of the person's own checkout."""
        module(tmp_path / "root").plan(str(tmp_path / "plan"))
        assert not (tmp_path / "root" / ".terraform").exists()

    def test_too_slow_apply_is_stopped_and_unlocks(self, tmp_path: Path) -> None:
        """A hung provider must not hold the state for the rest of the day."""
        cli = module(tmp_path / "root", SLOW_ROOT)
        saved = cli.plan(str(tmp_path / "plan"))
        impatient = TerraformCli(
            TerraformSettings(
                directory=tmp_path / "root", apply_timeout_seconds=1.0, stop_seconds=20
            )
        )
        with pytest.raises(ToolError, match="longer than its limit"):
            impatient.apply(saved.file)
        assert not list((tmp_path / "root").glob(".terraform.tfstate.lock.info"))

    def test_sigterm_during_apply_stops_in_order_and_unlocks(self, tmp_path: Path) -> None:
        """A pipeline that is cancelled must not leave a lock that pages someone at night."""
        root = tmp_path / "root"
        cli = module(root, SLOW_ROOT)
        saved = cli.plan(str(tmp_path / "plan"))
        threading.Thread(target=_terminate_us_once, args=(root / "started",)).start()
        with pytest.raises(ToolError, match="interrupted by SIGTERM"):
            cli.apply(saved.file)
        assert not list(root.glob(".terraform.tfstate.lock.info"))
        assert cli.plan(str(tmp_path / "plan")).changes


def _terminate_us_once(started: Path) -> None:
    """Send this process SIGTERM as soon as the apply is under way."""
    waiter = subprocess.run(
        ["sh", "-c", f"until [ -e {started} ]; do sleep 0.1; done"], timeout=240, check=False
    )
    if waiter.returncode == 0:
        os.kill(os.getpid(), signal.SIGTERM)


FINISHES = """#!/bin/sh
case "$1" in
  apply)
    trap 'asked=1' INT
    touch started
    until [ -n "$asked" ]; do sleep 0.1; done
    echo 'Apply complete! Resources: 1 added, 0 changed, 0 destroyed.' ;;
  plan)
    touch went-on ;;
esac
"""


def test_nothing_is_begun_after_a_stop_that_an_apply_outran(tmp_path: Path) -> None:
    """A cancelled job has seconds left: the next part would be killed with the lock in its hand."""
    root, program = tmp_path / "root", tmp_path / "terraform"
    root.mkdir()
    program.write_text(FINISHES)
    program.chmod(0o700)
    cli = TerraformCli(TerraformSettings(directory=root, program=str(program)))
    threading.Thread(target=_terminate_us_once, args=(root / "started",)).start()
    assert "1 added" in cli.apply(str(tmp_path / "plan"))
    assert cli.state_version().serial == 0
    for begin in (lambda: cli.plan(str(tmp_path / "plan")), lambda: cli.apply("plan")):
        with pytest.raises(ToolError, match="asked to stop by SIGTERM") as caught:
            begin()
        assert "plan again" in caught.value.hint
    assert not (root / "went-on").exists()


def test_missing_program_says_what_still_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A laptop without Terraform can still validate, render and plan capacity."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("RECONCILER_TERRAFORM", raising=False)
    with pytest.raises(ToolError, match="install Terraform"):
        TerraformCli(TerraformSettings(directory=tmp_path))


def test_missing_directory_is_named(tmp_path: Path) -> None:
    """A mistyped --dir must not end in a Terraform message about an empty module."""
    with pytest.raises(ToolError, match="no such directory"):
        TerraformCli(TerraformSettings(directory=tmp_path / "nowhere"))
