"""What an apply is bound to, as far as it lies in files."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.gitops.terraform_plan.directory import (
    LOCK,
    LOCK_BYTES_MAX,
    PlanDirectory,
    file_sha256,
    tree_sha256,
)
from reconciler.gitops.terraform_plan.finding import Finding
from reconciler.gitops.terraform_plan.report import PlanReport
from reconciler.model.errors import InputError
from tests.unit.gitops.plans import plan
from tests.unit.gitops.reports import report

REFUSAL = Finding(severity="refused", code="file/link", where=LOCK, message="is a symbolic link")


def prepared(tmp_path: Path) -> tuple[PlanDirectory, Path]:
    """An empty plan directory, and a root module without files."""
    plans, module = PlanDirectory(tmp_path / "plan"), tmp_path / "module"
    plans.prepare()
    module.mkdir()
    return plans, module


def refused() -> PlanReport:
    """A report that forbids the apply."""
    return replace(report(plan()), findings=(REFUSAL,))


@pytest.mark.parametrize(
    "used", [PlanDirectory.prepare, PlanDirectory.approved, PlanDirectory.summary]
)
def test_plan_directory_that_is_a_link_of_the_repository_is_not_followed(
    tmp_path: Path, used: Callable[[PlanDirectory], object]
) -> None:
    """A pull request with the link `plan` had files outside of the checkout deleted and written."""
    (tmp_path / "checkout/.git").mkdir(parents=True)
    (tmp_path / "machine").mkdir()
    kept = [tmp_path / "machine" / name for name in (LOCK, "report.json", "summary.md")]
    for each in kept:
        each.write_text("{}")
    (tmp_path / "checkout/plan").symlink_to(tmp_path / "machine")
    with pytest.raises(InputError, match="plan: is a symbolic link"):
        used(PlanDirectory(tmp_path / "checkout/plan"))
    assert [each.read_text() for each in kept] == ["{}"] * 3


def test_lock_file_of_an_allowed_root_is_kept(tmp_path: Path) -> None:
    """The apply would otherwise run with other provider versions than the plan."""
    plans, module = prepared(tmp_path)
    (module / LOCK).write_text("# locked\n")
    plans.keep(report(plan()), module)
    assert (plans.path / LOCK).read_text() == "# locked\n"


def test_nothing_of_a_refused_root_is_kept(tmp_path: Path) -> None:
    """A pull request could have any content uploaded with the plan."""
    plans, module = prepared(tmp_path)
    (module / LOCK).write_text("# anything\n")
    plans.keep(refused(), module)
    assert sorted(each.name for each in plans.path.iterdir()) == ["report.json", "summary.md"]


def test_lock_file_that_is_a_link_is_never_followed(tmp_path: Path) -> None:
    """A pull request could have the credentials of the job uploaded with the plan."""
    plans, module = prepared(tmp_path)
    (tmp_path / "credentials").write_text("secret")
    (module / LOCK).symlink_to(tmp_path / "credentials")
    plans.keep(refused(), module)
    with pytest.raises(OSError, match="is a symbolic link"):
        plans.keep(report(plan()), module)
    assert not (plans.path / LOCK).exists()


def test_lock_file_without_an_end_fills_no_memory(tmp_path: Path) -> None:
    """The job that plans would be killed without a word."""
    plans, module = prepared(tmp_path)
    (module / LOCK).write_bytes(b"#" * (LOCK_BYTES_MAX + 1))
    with pytest.raises(OSError, match="is longer than"):
        plans.keep(report(plan()), module)
    (module / LOCK).unlink()
    os.mkfifo(module / LOCK)
    with pytest.raises(OSError, match="is not a regular file"):
        plans.keep(report(plan()), module)


def test_lock_file_of_the_plan_gets_into_a_checkout_without_one(tmp_path: Path) -> None:
    """The apply would otherwise run with other provider versions than the plan."""
    plans, module = prepared(tmp_path)
    assert not plans.hand_over_locks(module)
    (plans.path / LOCK).write_text("# locked\n")
    assert plans.hand_over_locks(module)
    assert (module / LOCK).read_text() == "# locked\n"
    (plans.path / LOCK).write_text("# later\n")
    assert not plans.hand_over_locks(module)
    assert (module / LOCK).read_text() == "# locked\n"


def test_lock_file_is_not_written_through_a_link(tmp_path: Path) -> None:
    """A commit could have the job that applies write into its own home directory."""
    plans, module = prepared(tmp_path)
    (plans.path / LOCK).write_text("# locked\n")
    (module / LOCK).symlink_to(tmp_path / "outside")
    assert not plans.hand_over_locks(module)
    assert not (tmp_path / "outside").exists()


def test_kept_lock_file_that_is_a_link_is_not_read(tmp_path: Path) -> None:
    """Whoever made the plan folder would have a file of the job copied into the checkout."""
    plans, module = prepared(tmp_path)
    (tmp_path / "credentials").write_text("secret")
    (plans.path / LOCK).symlink_to(tmp_path / "credentials")
    with pytest.raises(OSError, match="is a symbolic link"):
        plans.hand_over_locks(module)
    assert not (module / LOCK).exists()


@pytest.mark.parametrize("begin", [PlanDirectory.prepare, PlanDirectory.forget_replans])
def test_what_an_apply_writes_follows_no_link(
    tmp_path: Path, begin: Callable[[PlanDirectory], None]
) -> None:
    """A link in the plan folder would have Terraform write wherever it leads."""
    plans, _ = prepared(tmp_path)
    for name in ("replanned.tfplan", "variables.json"):
        (plans.path / name).symlink_to(tmp_path / "outside")
    begin(plans)
    for file in (plans.replanned_file, plans.variables_file):
        assert file.is_absolute()
        file.write_text("written")
    assert not (tmp_path / "outside").exists()


def a_pipe(file: Path) -> None:
    """Nobody ever writes into it."""
    os.mkfifo(file)


def a_link(file: Path) -> None:
    """To what never ends."""
    file.symlink_to("/dev/zero")


def too_long(file: Path) -> None:
    """A file that takes no room on the disk."""
    with file.open("wb") as stream:
        stream.truncate(2**30)


@pytest.mark.parametrize("made", [a_pipe, a_link, too_long, Path.mkdir])
@pytest.mark.parametrize("name", ["report.json", "summary.md"])
def test_what_is_no_plain_file_in_the_plan_is_reported(
    tmp_path: Path, made: Callable[[Path], None], name: str
) -> None:
    """The job that applies would hang, or be killed for its memory."""
    plans, _ = prepared(tmp_path)
    made(plans.path / name)
    with pytest.raises(InputError, match=f"{name}: (cannot be read: )?is "):
        plans.approved() if name == "report.json" else plans.summary()


@pytest.mark.parametrize("made", [a_pipe, a_link, Path.mkdir])
def test_plan_file_that_is_no_plain_file_is_reported(
    tmp_path: Path, made: Callable[[Path], None]
) -> None:
    """The same of the plan itself, of which an apply takes the SHA-256."""
    made(tmp_path / "plan.tfplan")
    with pytest.raises(OSError, match=r"is (a symbolic link|not a regular file)"):
        file_sha256(tmp_path / "plan.tfplan")
    assert not file_sha256(tmp_path / "missing")


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        ('"serial": 7', '"serial": 1e999'),
        ('"serial": 7', '"serial": NaN'),
        ('"commit": "cccc', '"commit": "\\ud800cccc'),
        ('"targets": {}', '"targets": {"fleet-1": 1e999}'),
        ('"targets": {}', '"targets": []'),
        ('"schema": 1', '"schema": []'),
    ],
)
def test_malformed_report_is_reported(tmp_path: Path, was: str, becomes: str) -> None:
    """An apply that ends with the words of Python says nothing of the file that is wrong."""
    plans, module = prepared(tmp_path)
    plans.keep(report(plan()), module)
    text = (plans.path / "report.json").read_text()
    assert was in text
    (plans.path / "report.json").write_text(text.replace(was, becomes))
    with pytest.raises(InputError, match="plan again"):
        plans.approved()


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
