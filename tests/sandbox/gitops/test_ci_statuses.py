"""What the stages of a pipeline show beside a commit."""

from pathlib import Path

import pytest

from tests.forge_server import forge_server, on_branch
from tests.git_remote import git
from tests.sandbox.gitops.local_checkout import applied, planned, reconciler, set_config, set_text
from tests.terraform.needs import needs_terraform

pytestmark = [pytest.mark.sandbox, pytest.mark.terraform, needs_terraform]


def test_stages_are_shown_beside_the_commit_on_a_branch(checkout: Path) -> None:
    """`reconciler status` follows a change to EC2 by what the pipeline says there."""
    with forge_server("github") as forge:
        where = on_branch(forge.address)
        stages = ["--dir", "terraform"]
        for stage in (
            ("plan", "--out", "../plan"),
            ("apply", "--plan", "nowhere"),
            ("apply", "--plan", "../plan"),
            # Refused, as the state moved; the commit is applied all the same.
            ("apply", "--plan", "../plan"),
        ):
            reconciler("ci", *stage, *stages, cwd=checkout, environment=where)
        shown = [(body["context"], body["state"]) for _, body in forge.statuses]
        before = len(shown)
        request = {**where, "GITHUB_REF": "refs/pull/7/merge"}
        reconciler("ci", "plan", *stages, "--out", "../plan", cwd=checkout, environment=request)
        assert len(forge.statuses) == before
    plan, apply = "fleet-reconciler/plan/terraform", "fleet-reconciler/apply/terraform"
    assert shown == [
        (plan, "pending"),
        (plan, "success"),
        (apply, "failure"),
        (apply, "pending"),
        (apply, "success"),
    ]
    assert {commit for commit, _ in forge.statuses} == {git(checkout, "rev-parse", "HEAD")}


def test_late_apply_of_an_older_plan_is_a_failure_of_the_commit_that_it_was_made_for(
    checkout: Path,
) -> None:
    """The newer commit, whose own apply had succeeded, was said to have failed and never live."""
    older = git(checkout, "rev-parse", "HEAD")
    newest = ("--allow-newer-commit", "--dir", "terraform")
    with forge_server("github") as forge:
        where = on_branch(forge.address)
        plan = ("ci", "plan", "--dir", "terraform", "--out")
        reconciler(*plan, "../older", cwd=checkout, environment=where)
        newer = set_text(checkout, "two")
        reconciler(*plan, "../plan", cwd=checkout, environment=where)
        forge.statuses.clear()
        for folder, code in (("../plan", 0), ("../older", 1)):
            apply = ("ci", "apply", *newest, "--plan", folder)
            done = reconciler(*apply, cwd=checkout, environment=where)
            assert done.returncode == code, done.stderr
        shown = [(commit, body["state"]) for commit, body in forge.statuses]
    assert shown == [(newer, "pending"), (newer, "success"), (older, "failure")]


def test_plan_without_changes_says_that_nothing_is_left_to_apply(checkout: Path) -> None:
    """Pipelines start no apply for it: a new min_capacity would wait for an approval for ever.

    A config that is not rendered yet must not be called applied by the plan of its own commit.
    """
    planned(checkout)
    applied(checkout)
    plan, apply = "fleet-reconciler/plan/terraform", "fleet-reconciler/apply/terraform"
    stage = ("ci", "plan", "--dir", "terraform", "--out", "../plan")
    for prepare, expected in (
        (lambda: None, {plan: "success", apply: "success"}),
        (lambda: set_config(checkout), {plan: "success"}),
        (lambda: set_text(checkout, "two"), {plan: "failure"}),
    ):
        prepare()
        with forge_server("github") as forge:
            reconciler(*stage, cwd=checkout, environment=on_branch(forge.address))
        assert {body["context"]: body["state"] for _, body in forge.statuses} == expected
