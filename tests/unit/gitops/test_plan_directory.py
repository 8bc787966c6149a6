"""What an apply is bound to, as far as it lies in files."""

from pathlib import Path

import pytest

from reconciler.gitops.plan_directory import tree_sha256


@pytest.mark.parametrize(
    "name", ["x.tfstate.tf", "modules/a/x.tfstate.tf.json", "a.tfstate.tfvars"]
)
def test_file_that_terraform_reads_counts_whatever_it_is_called(tmp_path: Path, name: str) -> None:
    """An edit between plan and apply would go unseen in a file that is called like a state."""
    plans = tmp_path / "plan"
    before = tree_sha256(tmp_path, without=plans)
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text("# new\n")
    assert tree_sha256(tmp_path, without=plans) != before


@pytest.mark.parametrize(
    "name",
    ["terraform.tfstate", "terraform.tfstate.backup", ".terraform.tfstate.lock.info",
     ".terraform.lock.hcl", ".terraform/modules/modules.json", "plan/plan.tfplan"],
)  # fmt: skip
def test_file_that_terraform_writes_does_not_count(tmp_path: Path, name: str) -> None:
    """No plan could ever be applied."""
    plans = tmp_path / "plan"
    before = tree_sha256(tmp_path, without=plans)
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text("new\n")
    assert tree_sha256(tmp_path, without=plans) == before
