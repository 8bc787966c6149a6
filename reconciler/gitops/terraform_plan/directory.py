"""The directory that `ci plan` passes to `ci apply`: plan file, report, summary, provider locks."""

import hashlib
import json
import os
from pathlib import Path

from reconciler.gitops.terraform_plan.report import (
    ApprovedPlan,
    PlanReport,
    approved_from,
    report_json,
)
from reconciler.gitops.terraform_plan.summary import summary
from reconciler.machine.plain_file import make_plain, open_plain, read_plain
from reconciler.machine.work_tree import assert_no_link
from reconciler.model.errors import InputError, why_unreadable

PLAN = "plan.tfplan"
VARIABLES = "variables.json"
REPLANNED = "replanned.tfplan"
REPORT = "report.json"
SUMMARY = "summary.md"
LOCK = ".terraform.lock.hcl"
NO_PLAN = (
    "**No plan.** The job of the newest push failed before it had one: see its log. A summary of an"
    " earlier push that was shown here does not hold any more.\n"
)
"""Is shown in place of the summary of an earlier plan."""
LOCK_BYTES_MAX = 1 << 20
_TEXT_BYTES_MAX = 64 << 20
"""Of a report or a summary; both have some hundred bytes per fleet and finding."""
_READ = (".tf", ".tf.json", ".tfvars", ".tfvars.json")
_LEFT_OUT = {".terraform", ".git"}


class PlanDirectory:
    """Keeps one saved plan, readable by its owner only, since plan files hold every value."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def replanned_file(self) -> Path:
        """Return where an apply plans again when live capacity changed; the approved plan stays."""
        return self.path.resolve() / REPLANNED

    @property
    def variables_file(self) -> Path:
        """Return where an apply in parts writes the variables of a part."""
        return self.path.resolve() / VARIABLES

    @property
    def plan_file(self) -> Path:
        """Return the path of the saved plan."""
        return self.path.resolve() / PLAN

    def prepare(self) -> None:
        """Create it without an older plan, so that after a failure there is none to apply.

        Raises:
            InputError: A link of the repository leads to it.
        """
        assert_no_link(self.path)
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        for name in (PLAN, REPORT, SUMMARY, LOCK):
            (self.path / name).unlink(missing_ok=True)
        self.forget_replans()

    def forget_replans(self) -> None:
        """Remove what an apply writes here: a link of that name would redirect it."""
        for name in (REPLANNED, VARIABLES):
            (self.path / name).unlink(missing_ok=True)

    def keep(self, report: PlanReport, module: Path) -> None:
        """Write report and summary; delete a refused plan, so that it cannot be applied.

        For a refused root module nothing else is kept, as its lock file may be anything.

        Raises:
            OSError: The lock file cannot be read, is not a regular file or has over 1 MiB.
        """
        if report.allowed:
            self._keep_lock(module)
        else:
            self.plan_file.unlink(missing_ok=True)
        text = json.dumps(report_json(report), indent=2, sort_keys=True, ensure_ascii=False)
        _write(self.path / REPORT, f"{text}\n".encode())
        _write(self.path / SUMMARY, summary(report).encode())

    def _keep_lock(self, module: Path) -> None:
        try:
            content = read_plain(module / LOCK, LOCK_BYTES_MAX)
        except FileNotFoundError:
            return
        _write(self.path / LOCK, content)

    def summary(self) -> str:
        """Return the Markdown summary that was kept.

        Raises:
            InputError: There is none here, it is not a readable file, or a link of the repository
                leads here.
        """
        assert_no_link(self.path)
        file = self.path / SUMMARY
        try:
            return _text(file)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise InputError(
                str(file), "there is no summary", "reconciler ci plan writes it"
            ) from error

    def approved(self) -> ApprovedPlan:
        """Return what was approved.

        Raises:
            InputError: There is no complete report of `ci plan` here, it is not a readable file, or
                a link of the repository leads here.
        """
        assert_no_link(self.path)
        file = self.path / REPORT
        try:
            text = _text(file)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise InputError(
                str(self.path), "holds no report of `reconciler ci plan`", "run ci plan first"
            ) from error
        return approved_from(text, where=str(file))

    def hand_over_locks(self, module: Path) -> bool:
        """Give a checkout without a lock file the plan's provider versions.

        Returns:
            Whether the checkout has a new file.

        Raises:
            OSError: The kept file is not a regular one, or has over 1 MiB; or it cannot be written.
        """
        try:
            make_plain(module / LOCK, read_plain(self.path / LOCK, LOCK_BYTES_MAX))
        except (FileNotFoundError, FileExistsError):
            return False
        return True


def _text(file: Path) -> str:
    try:
        return read_plain(file, _TEXT_BYTES_MAX).decode()
    except (FileNotFoundError, NotADirectoryError):
        raise
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(str(file), why_unreadable(error), "plan again") from error


def file_sha256(file: Path) -> str:
    """Return the SHA-256 of one file, empty when it does not exist.

    Raises:
        OSError: It cannot be read, or is a link or not a regular file.
    """
    try:
        with open_plain(file) as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except FileNotFoundError:
        return ""


def tree_sha256(module: Path, *, without: Path) -> str:
    """Return the SHA-256 over names and contents of a root module's files.

    What Terraform itself writes there (state, locks, data) and the plan directory do not count.
    """
    digest = hashlib.sha256()
    for file in sorted(_files(module, without.resolve()), key=lambda f: f.relative_to(module)):
        name = file.relative_to(module).as_posix()
        content = str(file.readlink()) if file.is_symlink() else file_sha256(file)
        digest.update(f"{len(name)}:{name}{len(content)}:{content}".encode())
    return digest.hexdigest()


def _files(module: Path, without: Path) -> list[Path]:
    found = []
    for folder, folders, names in os.walk(module):
        here = Path(folder)
        folders[:] = sorted(
            f for f in folders if f not in _LEFT_OUT and (here / f).resolve() != without
        )
        found += [here / name for name in names if not _is_terraforms(name)]
    return found


def _is_terraforms(name: str) -> bool:
    """Return whether Terraform writes the file; what Terraform reads counts, whatever its name."""
    return name == LOCK or (".tfstate" in name and not name.endswith(_READ))


def _write(file: Path, content: bytes) -> None:
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb") as stream:
        stream.write(content)
