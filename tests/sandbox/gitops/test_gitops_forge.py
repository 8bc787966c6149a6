"""`reconciler gitops` as a process beside a forge: pull requests and commit statuses."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests import command
from tests.forge_server import TOKEN, forge_server
from tests.git_http import git_over_http
from tests.git_remote import git, make_remote, write_and_push

pytestmark = pytest.mark.sandbox

TIMEOUT_SECONDS = 120
CONFIG = "cluster: one\nsectors: {primary: {kind: memory, fleets: [{size: small}]}}\n"
_ENVIRONMENT = dict(os.environ)  # noqa: TID251 - the process needs PATH and HOME


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A person's clone of a config repository."""
    return make_remote(tmp_path, {"sectors.yaml": CONFIG})


def gitops(*arguments: str, token: str = TOKEN) -> subprocess.CompletedProcess[str]:
    """One turn; the token is in the environment only."""
    return command.reconciler(
        *("gitops", "--once", "--output", "json"),
        *arguments,
        env={**_ENVIRONMENT, "RECONCILER_GIT_TOKEN": token},
        timeout_seconds=TIMEOUT_SECONDS,
    )


@pytest.mark.parametrize("kind", ["github", "gitlab"])
def test_pull_request_mode_opens_one_and_shows_the_status(work: Path, kind: str) -> None:
    """The reviewer must find the rendered change where they review."""
    with git_over_http(work.parent, TOKEN) as url, forge_server(kind) as forge:
        options = ["--repository", url, "--mode", "pull-request", "--forge", kind]
        turns = [gitops(*options, "--forge-api", forge.address) for _ in range(2)]
    assert [turn.returncode for turn in turns] == [0, 0], turns[0].stderr
    assert TOKEN not in "".join(turn.stdout + turn.stderr for turn in turns)
    report = json.loads(turns[1].stdout)
    assert report["unshown"] == []
    [request] = forge.pull_requests
    assert (request["source"], request["target"]) == (report["branch"], "main")
    assert "Config commit:" in request["body"]
    assert report["pull_request"].startswith(f"https://{kind}.example/team/fleets/")
    head = git(work.parent / "remote.git", "rev-parse", "main")
    assert {commit for commit, _ in forge.statuses} == {head}


def test_invalid_config_fails_the_commit_that_broke_it(work: Path) -> None:
    """Whoever pushed it sees a red mark, not an operator a log line."""
    broken = write_and_push(work, "sectors.yaml", "cluster: one\nnosuch: 1\n", "Break it")
    with git_over_http(work.parent, TOKEN) as url, forge_server("github") as forge:
        done = gitops("--repository", url, "--forge", "github", "--forge-api", forge.address)
    assert done.returncode == 2
    [(commit, status)] = forge.statuses
    assert (commit, status["state"]) == (broken, "failure")
    assert "config/unknown-key" in status["description"]


def test_forge_that_is_down_costs_a_warning_only(work: Path) -> None:
    """The render is what counts; a status can follow."""
    with git_over_http(work.parent, TOKEN) as url:
        api = "http://127.0.0.1:9"
        done = gitops("--repository", url, "--forge", "github", "--forge-api", api)
    assert done.returncode == 0
    assert done.stderr.startswith("warning: GitHub POST /repos/team/fleets/statuses/")


def test_named_forge_without_a_token_is_wrong_usage(work: Path) -> None:
    """Asked-for statuses that silently never come would be missed too late."""
    done = gitops("--repository", "https://github.com/team/fleets", "--forge", "github", token="")
    assert done.returncode == 2
    assert "RECONCILER_FORGE_TOKEN" in done.stderr
