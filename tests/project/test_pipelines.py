"""The shipped pipelines: actionlint, the forges' schemas, and rules of our own."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
GITHUB = ROOT / "ci/github-actions.yml"
GITLAB = ROOT / "ci/gitlab-ci.yml"
ACTIONLINT = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.8"
TIMEOUT_SECONDS = 280
_ENVIRONMENT = dict(os.environ)  # noqa: TID251 - programs need PATH and HOME


def call(*command: str, **extra: str) -> subprocess.CompletedProcess[str]:
    """A program, with all that it printed in `stdout`."""
    return subprocess.run(
        command,
        env=_ENVIRONMENT | extra,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )


@pytest.fixture(scope="module")
def actionlint() -> str:
    """The program: from the PATH, else built once by Go and kept outside of the tree."""
    found = shutil.which("actionlint")
    if found:
        return found
    cache = Path.home() / ".cache/fleet-reconciler/tools" / ACTIONLINT.rpartition("@")[2]
    if not (cache / "actionlint").is_file():
        if shutil.which("go") is None:
            pytest.skip("actionlint is not on the PATH, and there is no Go to build it with")
        built = call("go", "install", ACTIONLINT, GOBIN=str(cache), GOFLAGS="")
        if built.returncode:
            pytest.skip(f"actionlint could not be built: {built.stdout.strip()[-200:]}")
    return str(cache / "actionlint")


@pytest.mark.timeout(300)
def test_github_workflow_passes_actionlint(actionlint: str, tmp_path: Path) -> None:
    """A workflow with a typo in an expression fails at the first pull request of every user."""
    workflows = tmp_path / ".github/workflows"
    workflows.mkdir(parents=True)
    shutil.copy(GITHUB, workflows)
    done = call(actionlint, "-no-color", str(workflows / GITHUB.name))
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("schema", ["github-workflows", "gitlab-ci"])
def test_pipeline_follows_its_schema(schema: str, tmp_path: Path) -> None:
    """GitLab refuses a whole file for one unknown key."""
    transform = []
    file = GITHUB
    if schema == "gitlab-ci":
        # The header with the inputs is a document of its own, which the schema does not know.
        file = tmp_path / "gitlab-ci.yml"
        file.write_text(GITLAB.read_text().split("\n---\n")[1])
        transform = ["--data-transform", "gitlab-ci"]
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}"]
    done = call(*check, *transform, str(file))
    assert done.returncode == 0, done.stdout


def test_actions_are_pinned_to_commits() -> None:
    """A tag can be moved to other code, which then runs with the role that applies."""
    used = re.findall(r"(?m)^ *(?:- )?uses: (\S+)(.*)$", GITHUB.read_text())
    assert used
    for action, comment in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", action), action
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment), f"{action} names no version"


def test_expressions_never_reach_a_shell() -> None:
    """A branch's name pasted into a script is a program of whoever opens the pull request."""
    workflow = yaml.safe_load(GITHUB.read_text())
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    scripts = [step["run"] for step in steps if "run" in step]
    pasted = {found for script in scripts for found in re.findall(r"\$\{\{[^}]*\}\}", script)}
    assert pasted == {"${{ vars.FLEET_RECONCILER }}"}


def test_only_the_apply_gets_the_role_that_writes() -> None:
    """What runs for a pull request must not be able to change anything."""
    workflow = yaml.safe_load(GITHUB.read_text())
    for name, job in workflow["jobs"].items():
        assert ("AWS_APPLY_ROLE" in str(job)) == (name == "apply"), name
        assert ("environment" in job) == (name == "apply"), name
        assert "write" not in str(job.get("permissions", {}).get("contents", "")), name


def steps_of(job: str) -> list[dict[str, str]]:
    """The steps of a job on GitHub."""
    found: list[dict[str, str]] = yaml.safe_load(GITHUB.read_text())["jobs"][job]["steps"]
    return found


def test_faults_of_a_config_are_told_before_a_role_is_needed() -> None:
    """Whoever mistyped a fleet, or comes from a fork, must not read about credentials instead."""
    told = [str(step.get("run", step.get("uses", ""))) for step in steps_of("plan")]
    (role,) = [number for number, each in enumerate(told) if "configure-aws-credentials" in each]
    for command in ("reconciler validate", "reconciler render", "terraform fmt"):
        assert any(each.startswith(command) for each in told[:role]), command
    for step in steps_of("plan")[role:]:
        assert "OURS" in step["if"] or "github.event_name == 'push'" in step["if"], step


def test_each_cluster_is_planned_and_applied_with_its_own_role() -> None:
    """terraform/reconciler makes roles per cluster: the one of another cluster is refused."""
    for job in ("plan", "apply", "drift"):
        (role,) = re.findall(r"role-to-assume': '([^}]*)}}", str(steps_of(job)))
        assert "matrix.root.cluster" in role, job
    assert {"plan_role", "apply_role"} <= set(re.findall(r"inputs\.(\w+)", GITLAB.read_text()))


def test_credentials_last_as_long_as_an_apply() -> None:
    """Credentials that expire in the middle leave half a change and a lock behind."""
    (seconds,) = re.findall(r"role-duration-seconds': (\d+)", str(steps_of("apply")))
    minutes = yaml.safe_load(GITHUB.read_text())["jobs"]["apply"]["timeout-minutes"]
    granted = re.search(
        r'"apply" \? (\d+)', (ROOT / "terraform/reconciler/pipelines.tf").read_text()
    )
    assert granted is not None
    assert minutes * 60 <= int(seconds) <= int(granted[1])


def test_every_stage_is_told_its_config() -> None:
    """A config of another name would silently not count: no limits, no allow_destroy."""
    for file in (GITHUB, GITLAB):
        text = re.sub(r"\\?\n +", " ", file.read_text())
        stages = re.findall(r"reconciler ci (?:plan|apply|drift)[^\n]*", text)
        assert len(stages) >= 3
        assert all('--config "$CONFIG"' in stage for stage in stages), stages


def test_gitlab_environments_are_one_per_cluster() -> None:
    """GitLab fails the waiting apply of one cluster after a newer pipeline applied another's."""
    document = yaml.safe_load(GITLAB.read_text().split("\n---\n")[1])
    names = [job["environment"]["name"] for job in document.values() if "environment" in job]
    assert names
    assert all("$[[ inputs.root ]]" in name for name in names)


def test_gitlab_jobs_share_no_name_between_clusters() -> None:
    """Two inclusions with equal names would silently be one job."""
    document = yaml.safe_load(GITLAB.read_text().split("\n---\n")[1])
    jobs = [name for name, job in document.items() if isinstance(job, dict)]
    assert jobs
    assert all("$[[ inputs.root ]]" in name for name in jobs)
