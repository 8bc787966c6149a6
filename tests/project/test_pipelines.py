"""The shipped pipelines: actionlint, the forges' schemas, and rules of our own."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler import __version__
from tests.project.go_tools import go_tool
from tests.project.pipelines import GITHUB, GITLAB, ROOT, github, gitlab_jobs, steps_of

RELEASE = ROOT / ".github/workflows/release.yml"
ACTIONLINT = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.8"
TIMEOUT_SECONDS = 280
_ENVIRONMENT = dict(os.environ)  # noqa: TID251 - programs need PATH and HOME


def call(*command: str, **extra: str) -> subprocess.CompletedProcess[str]:
    """A program, with all that it printed in `stdout`."""
    return subprocess.run(
        command,
        cwd=ROOT,
        env=_ENVIRONMENT | extra,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )


@pytest.fixture(scope="module")
def actionlint() -> str:
    """The program."""
    return go_tool("actionlint", ACTIONLINT)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("workflow", [GITHUB, RELEASE], ids=["pipeline", "release"])
def test_github_workflow_passes_actionlint(actionlint: str, tmp_path: Path, workflow: Path) -> None:
    """A workflow with a typo in an expression fails at the first pull request of every user."""
    workflows = tmp_path / ".github/workflows"
    workflows.mkdir(parents=True)
    shutil.copy(workflow, workflows)
    done = call(actionlint, "-no-color", str(workflows / workflow.name))
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
    workflow = github()
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    scripts = [step["run"] for step in steps if "run" in step]
    pasted = {found for script in scripts for found in re.findall(r"\$\{\{[^}]*\}\}", script)}
    assert pasted == set()


def test_only_jobs_of_main_get_the_role_that_writes() -> None:
    """What runs for a pull request must not be able to change anything."""
    workflow = github()
    environments = {"apply": "fleets", "finish": "fleets-finish"}
    for name, job in workflow["jobs"].items():
        if name in {"pending", "apply"}:
            assert (
                "github.event_name != 'pull_request' && needs.roots.outputs.applies == 'true'"
                in job["if"]
            )
        if name == "finish":
            # Nobody but GitHub starts a schedule, and with the workflow of the default branch.
            assert job["if"].startswith("github.event.schedule == '*/15 * * * *' && ")
        assert ("AWS_APPLY_ROLE" in str(job)) == (name in environments), name
        assert job.get("environment") == environments.get(name), name
        assert "write" not in str(job.get("permissions", {}).get("contents", "")), name


def test_faults_of_a_config_are_reported_before_a_role_is_needed() -> None:
    """Whoever mistyped a fleet, or comes from a fork, must not read about credentials instead."""
    told = [str(step.get("run", step.get("uses", ""))) for step in steps_of("plan")]
    (role,) = [number for number, each in enumerate(told) if "configure-aws-credentials" in each]
    for command in ("reconciler validate", "reconciler render", "terraform fmt"):
        assert any(each.startswith(command) for each in told[:role]), command
    for step in steps_of("plan")[role:]:
        ours = "OURS" in step["if"] or "github.event_name != 'pull_request'" in step["if"]
        assert ours, step


INSTALL = ("--no-deps --requirement", "/build.txt", "--no-build-isolation --requirement")
"""The program itself, tools for sources, everything else: in this order."""


def assert_hashed(script: str) -> None:
    """Every call of pip checks hashes, and the three of them are there in their order."""
    calls = [line for line in script.splitlines() if "pip install" in line]
    assert [part in call for call, part in zip(calls, INSTALL, strict=True)] == [True] * 3
    assert all("--require-hashes" in call for call in calls), calls


def test_programs_are_installed_by_hash_and_before_there_are_credentials() -> None:
    """A package that was replaced in the index would run with the role that applies."""
    workflow = github()
    assert_hashed(workflow["env"]["INSTALL"])
    for name, job in workflow["jobs"].items():
        told = [str(step.get("run", step.get("uses", ""))) for step in job["steps"]]
        assert not [each for each in told if "pip install" in each], name
        installs = [number for number, each in enumerate(told) if '"$INSTALL"' in each]
        roles = [number for number, each in enumerate(told) if "credentials" in each]
        assert not roles or installs[0] < roles[0], name
        assert "TOKEN" not in str(job.get("env", {})), f"{name} has a token while it installs"
    for name, gitlab_job in gitlab_jobs().items():
        assert "pip install" not in str(gitlab_job.get("script", "")), name
        assert "pip install" not in str(gitlab_job.get("after_script", "")), name
    template = gitlab_jobs()[".fleets $[[ inputs.root ]]"]["before_script"]
    assert_hashed("\n".join(template))
    assert "AWS_WEB_IDENTITY_TOKEN_FILE" in template[-1]


def test_shipped_requirements_are_where_the_pipelines_look() -> None:
    """The wheel's own hash then vouches for everything that it needs."""
    project = (ROOT / "pyproject.toml").read_text()
    for name in ("build", "runtime"):
        there = f'"requirements/{name}.txt" = "reconciler/_assets/requirements/{name}.txt"'
        assert there in project
        text = re.sub(r"\\\n", "", (ROOT / f"requirements/{name}.txt").read_text())
        pins = [line for line in text.splitlines() if re.match(r"[a-z]", line)]
        assert pins
        assert all(re.search(r"==.*--hash=sha256:[0-9a-f]{64}", line) for line in pins)


def runs(job: dict[str, Any], variables: dict[str, str], changed: set[str], there: bool) -> str:
    """How GitLab takes a job into a pipeline: `on_success`, `manual`, …; empty: not at all.

    Source: https://docs.gitlab.com/ci/yaml/#rules, read 2026-11. A rule's parts must all hold.
    """
    for rule in job["rules"]:
        parts = [re.split(" ([!=]=) ", part) for part in rule["if"].split(" && ")]
        values = [(_value(a, variables), how, _value(b, variables)) for a, how, b in parts]
        files = [pattern.replace("/**/*", "/") for pattern in rule.get("changes", [""])]
        touched = any(file.startswith(tuple(files)) for file in changed)
        if (
            all((left == right) == (how == "==") for left, how, right in values)
            and ("changes" not in rule or touched)
            and ("exists" not in rule or there)
        ):
            return str(rule.get("when", "on_success"))
    return ""


def _value(side: str, variables: dict[str, str]) -> str:
    if re.fullmatch(r"\$\w+", side):
        return variables.get(side[1:], "")
    return side.strip('"')


CONFIG_FILE, RENDERED = "$[[ inputs.config ]]", "$[[ inputs.root ]]/main.tf"
NAMED = "$[[ inputs.files ]]"
MAIN = {"CI_COMMIT_BRANCH": "main", "CI_DEFAULT_BRANCH": "main"}


@pytest.mark.parametrize(
    ("source", "branch", "changed", "there", "plan", "apply"),
    [
        # A later `allow_destroy` renders to the same files.
        ("push", "main", {CONFIG_FILE}, True, "on_success", "manual"),
        # The fleet is drained by now: somebody starts the pipeline.
        ("web", "main", set(), True, "on_success", "manual"),
        ("push", "main", {RENDERED}, True, "on_success", "manual"),
        ("push", "main", {"other/sectors.yaml"}, True, "", ""),
        # A policy file may have faults, and Terraform does not see it.
        ("push", "main", {NAMED}, True, "on_success", ""),
        ("merge_request_event", "", {NAMED}, True, "on_success", ""),
        # The config of a new cluster comes a commit earlier than its root module.
        ("push", "main", {CONFIG_FILE}, False, "", ""),
        ("merge_request_event", "", {CONFIG_FILE}, False, "on_success", ""),
        ("push", "feature", {CONFIG_FILE}, True, "", ""),
        ("web", "feature", set(), True, "", ""),
        ("schedule", "main", set(), True, "", ""),
    ],
)
def test_gitlab_plans_and_applies_what_changed(
    source: str, branch: str, changed: set[str], there: bool, plan: str, apply: str
) -> None:
    """An approval of a removal that no pipeline sees is never carried out."""
    variables = {**MAIN, "CI_PIPELINE_SOURCE": source, "CI_COMMIT_BRANCH": branch}
    found = {
        name.split()[0]: runs(job, variables, changed, there)
        for name, job in gitlab_jobs().items()
        if "rules" in job
    }
    assert (found["plan"], found["apply"]) == (plan, apply)
    assert (found["drift"] != "") == (source == "schedule")
    assert found["finish"] == ""


@pytest.mark.parametrize(
    ("asked", "enabled", "branch", "there", "finish", "drift"),
    [
        ("true", "true", "main", True, "on_success", ""),
        ("true", "false", "main", True, "", ""),
        ("true", "true", "feature", True, "", ""),
        ("true", "true", "main", False, "", ""),
        ("", "true", "main", True, "", "on_success"),
        # A new cluster has no root module yet; another branch's is not what was applied.
        ("", "true", "main", False, "", ""),
        ("", "true", "feature", True, "", ""),
    ],
)
def test_gitlab_finishes_removals_on_a_schedule_of_its_own(
    asked: str, enabled: str, branch: str, there: bool, finish: str, drift: str
) -> None:
    """The role that writes is used without an approval only where the team switched that on."""
    variables = {
        **MAIN,
        "CI_PIPELINE_SOURCE": "schedule",
        "CI_COMMIT_BRANCH": branch,
        "FINISH_REMOVALS": asked,
    }
    jobs = {name.split()[0]: job for name, job in gitlab_jobs().items() if "rules" in job}
    for rule in jobs["finish"]["rules"]:
        rule["if"] = rule["if"].replace("$[[ inputs.finish ]]", enabled)
    assert runs(jobs["finish"], variables, set(), there) == finish
    assert runs(jobs["drift"], variables, set(), there) == drift
    assert jobs["finish"]["resource_group"] == jobs["apply"]["resource_group"]


def test_github_finishes_removals_on_a_schedule_that_the_team_switches_on() -> None:
    """A job that fails every 15 minutes where nobody made its environment is switched off."""
    workflow = github()
    crons = [each["cron"] for each in workflow[True]["schedule"]]
    named = {
        name: re.findall(r"github\.event\.schedule == '([^']*)'", str(job.get("if", "")))
        for name, job in workflow["jobs"].items()
    }
    assert named == {
        **{name: [] for name in workflow["jobs"]},
        "finish": [crons[1]],
        "drift": [crons[0]],
    }
    off = f"github.event.schedule != '{crons[1]}' || vars.FINISH_REMOVALS == 'true'"
    assert workflow["jobs"]["roots"]["if"] == off
    (step,) = [each for each in steps_of("roots") if each.get("id") == "roots"]
    assert crons[1] in str(step["env"])
    assert "--removing" in step["run"]


def test_github_starts_again_for_what_was_drained_since() -> None:
    """A run of an older commit cannot be repeated once a month has passed."""
    workflow = github()
    assert "workflow_dispatch" in workflow[True]  # YAML 1.1 reads the key `on` as a truth value
    assert not [name for name, job in workflow["jobs"].items() if "'push'" in str(job.get("if"))]


def test_no_gitlab_job_of_a_merge_request_has_role_and_token_at_once() -> None:
    """Whoever opens a merge request writes what its jobs run."""
    jobs = gitlab_jobs()
    comment = jobs["comment $[[ inputs.root ]]"]
    assert "id_tokens" not in comment
    assert comment["variables"] == {"GIT_STRATEGY": "none"}
    assert comment["environment"]["name"].startswith("fleets-comments/")
    assert "id_tokens" not in jobs[".fleets $[[ inputs.root ]]"]
    for name, job in jobs.items():
        calls = "ci comment" in str(job.get("script"))
        assert calls == (job is comment), name


def test_each_cluster_is_planned_and_applied_with_its_own_role() -> None:
    """terraform/reconciler makes roles per cluster: the one of another cluster is refused."""
    for job in ("plan", "apply", "finish", "drift"):
        (role,) = re.findall(r"role-to-assume': '([^}]*)}}", str(steps_of(job)))
        assert "matrix.root.cluster" in role, job
    assert {"plan_role", "apply_role"} <= set(re.findall(r"inputs\.(\w+)", GITLAB.read_text()))


def test_credentials_last_as_long_as_an_apply() -> None:
    """Credentials that expire in the middle leave half a change and a lock behind."""
    (seconds,) = re.findall(r"role-duration-seconds': (\d+)", str(steps_of("apply")))
    minutes = github()["jobs"]["apply"]["timeout-minutes"]
    granted = re.search(
        r'"apply" \? (\d+)', (ROOT / "terraform/reconciler/pipelines.tf").read_text()
    )
    assert granted is not None
    assert minutes * 60 <= int(seconds) <= int(granted[1])


def test_every_stage_is_given_its_config() -> None:
    """A config of another name would silently not count: no limits, no allow_destroy."""
    for file in (GITHUB, GITLAB):
        text = re.sub(r"\\?\n +", " ", file.read_text())
        stages = re.findall(r"reconciler ci (?:plan|apply|finish|drift)[^\n]*", text)
        assert len(stages) >= 4
        assert all('--config "$CONFIG"' in stage for stage in stages), stages


def test_gitlab_environments_are_one_per_cluster() -> None:
    """GitLab fails the waiting apply of one cluster after a newer pipeline applied another's."""
    jobs = gitlab_jobs().values()
    names = [job["environment"]["name"] for job in jobs if "environment" in job]
    assert names
    assert all("$[[ inputs.root ]]" in name for name in names)


def test_gitlab_jobs_share_no_name_between_clusters() -> None:
    """Two inclusions with equal names would silently be one job."""
    jobs = gitlab_jobs()
    assert jobs
    assert all("$[[ inputs.root ]]" in name for name in jobs)


def test_release_takes_actions_by_commit_and_only_the_rights_that_it_uses() -> None:
    """Whoever moves a tag of an action could publish an image under our name."""
    text = RELEASE.read_text()
    uses = re.findall(r"uses: (\S+)(.*)", text)
    assert uses
    for action, comment in uses:
        assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action), action
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment), action
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {"contents": "read"}
    assert "permissions" not in workflow["jobs"]["check"]
    assert all("timeout-minutes" in job for job in workflow["jobs"].values())


def test_release_needs_the_version_in_every_place_that_names_it() -> None:
    """The check of the workflow, run on this tree with its own version as the tag."""
    check = yaml.safe_load(RELEASE.read_text())["jobs"]["check"]["steps"][-1]["run"]
    good = call("bash", "-euo", "pipefail", "-c", check, GITHUB_REF_NAME=f"v{__version__}")
    assert good.returncode == 0, good.stdout
    other = call("bash", "-euo", "pipefail", "-c", check, GITHUB_REF_NAME="v99.0.0")
    assert other.returncode != 0


def test_comment_is_written_however_the_job_of_the_plan_ends() -> None:
    """What an earlier push was planned as stayed on the pull request as if it were of this one."""
    (step,) = [step for step in steps_of("plan") if "ci comment" in step.get("run", "")]
    ours = "!cancelled() && github.event_name == 'pull_request' && env.OURS == 'true'"
    assert step["if"] == f"${{{{ {ours} }}}}"
    (rule,) = gitlab_jobs()["comment $[[ inputs.root ]]"]["rules"]
    assert rule["when"] == "always"
