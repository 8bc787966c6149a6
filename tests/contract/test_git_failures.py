"""What git's and Terraform's messages are taken for."""

import pytest

from reconciler.adapters.git.failures import LINE_MAX, failure
from reconciler.adapters.terraform import failures as terraform
from reconciler.adapters.terraform.program import CommandResult
from reconciler.model.errors import (
    Conflict,
    Forbidden,
    NotFound,
    OutcomeUnknown,
    ReconcilerError,
    ToolError,
    Unavailable,
)


@pytest.mark.parametrize(
    ("text", "expected", "said"),
    [
        ("fatal: write error: No space left on device", ToolError, "no space left"),
        ("fatal: couldn't find remote ref refs/heads/main", NotFound, "branch main"),
        ("git@github.com: Permission denied (publickey).", Forbidden, "Permission denied"),
        ("remote: Repository not found.\nfatal: repository 'x' not found", NotFound, "not found"),
        ("fatal: unable to access 'x': Could not resolve host: y", Unavailable, "resolve"),
        ("fatal: unable to access 'x': The requested URL returned error: 503", Unavailable, "503"),
        ('Timeout: the command "git fetch" did not complete in 60 secs.', Unavailable, "in time"),
        ("fatal: the remote end hung up unexpectedly", Unavailable, "hung up"),
        ("fatal: bad object refs/remotes/origin/followed", ToolError, "bad object"),
        ("", ToolError, "without a word"),
    ],
)
def test_failed_fetch_is_distinguished(
    text: str, expected: type[ReconcilerError], said: str
) -> None:
    """The class decides whether the loop waits, asks for help or starts over."""
    error = failure("fetch", "git fetch x", "main", text)
    assert type(error) is expected
    assert said in str(error)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" ! [rejected]  a -> main (fetch first)\nerror: failed to push some refs", Conflict),
        (" ! [rejected]  a -> main (non-fast-forward)", Conflict),
        ("! [remote rejected] a -> main (cannot lock ref 'refs/heads/main': is at b)", Conflict),
        ("! [remote rejected] a -> r/x (directory file conflict)", Conflict),
        ("remote: error: GH006: Protected branch update failed", Forbidden),
        ("! [remote rejected] a -> main (pre-receive hook declined)", Forbidden),
        (
            "! [remote rejected] a -> main (TF402455: not permitted)",
            Forbidden,
        ),
        ("! [remote rejected] a -> main (prohibited by Gerrit: not permitted: update)", Forbidden),
        ("fatal: the remote end hung up unexpectedly", OutcomeUnknown),
        ('Timeout: the command "git push" did not complete in 60 secs.', OutcomeUnknown),
        ("fatal: unable to access 'x': Could not resolve host: y", Unavailable),
    ],
)
def test_failed_push_is_distinguished(text: str, expected: type[ReconcilerError]) -> None:
    """A lost reply is no refusal: the commit may have arrived."""
    assert type(failure("push", "git push x", "main", text)) is expected


def test_reason_of_a_hook_that_declines_a_push_is_reported() -> None:
    """Its words are in other lines than git's."""
    why = "You are not allowed to push code to protected branches on this project."
    text = f"remote: GitLab: {why}\nremote: \n ! [remote rejected] a -> main (hook declined)"
    assert why in str(failure("push", "git push x", "main", text))


def test_end_of_a_long_line_of_a_remote_is_not_read() -> None:
    """Patterns take time by the square of a line's length: 14 minutes for a mebibyte."""
    text = f"remote: repository {'x' * LINE_MAX} not found"
    assert type(failure("fetch", "git fetch x", "main", text)) is ToolError


@pytest.mark.parametrize(
    "said",
    [
        "ERROR: The key you are authenticating with has been marked as read only.",
        "ERROR: Permission to team/fleets.git denied to deploy key",
        "remote: error: GH013: Repository rule violations found for refs/heads/main.",
        "remote: ERROR: You are not allowed to push code to this project.",
    ],
)
def test_push_without_the_right_says_so(said: str) -> None:
    """A deploy key without write access is the first thing that goes wrong in a new cluster."""
    text = f"{said}\nfatal: Could not read from remote repository.\n\nPlease make sure you have…"
    error = failure("push", "git push x", "main", text)
    assert type(error) is Forbidden
    assert said.partition(": ")[2][:30] in str(error)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("No user exists for uid 65532", ToolError),
        ("Host key verification failed.", Forbidden),
        ("ssh: Could not resolve hostname git.example: Name or service not known", Unavailable),
        ("ssh: connect to host git.example port 22: Connection refused", Unavailable),
    ],
)
def test_words_of_ssh_are_kept(said: str, expected: type[ReconcilerError]) -> None:
    """`Could not read from remote repository` is what git says of every failure of ssh."""
    warning = "Warning: Identity file /key not accessible: No such file or directory."
    text = f"{warning}\n{said}\nfatal: Could not read from remote repository.\n\nPlease make sure…"
    error = failure("fetch", "git fetch x", "main", text)
    assert type(error) is expected
    assert said in str(error)


def test_user_that_ssh_does_not_know_is_reported_with_the_remedy() -> None:
    """ssh-keygen, which signs commits, refuses it too."""
    text = "error: No user exists for uid 70000?\n\nfatal: failed to write commit object"
    error = failure("local", "git commit-tree", "main", text)
    assert type(error) is ToolError
    assert "No user exists for uid 70000" in str(error)
    assert "/etc/passwd" in str(error)


def test_full_disk_of_the_remote_is_not_ours() -> None:
    """Freeing space here would help nobody."""
    text = "remote: fatal: write error: No space left on device\nerror: failed to push some refs"
    assert "--clone" not in str(failure("push", "git push x", "main", text))


def finished(**parts: object) -> CommandResult:
    """A failed call of Terraform."""
    facts: dict[str, object] = {"status": 1, "out": "", "error": "", **parts}
    return CommandResult(**facts)  # type: ignore[arg-type] # a test varies single fields


TWO_ERRORS = "│ Error: One\n│ \n│ first\n╷\n│ Error: Two\n"
LOCKED = """
╷
│ Error: Error acquiring the state lock
│
│ Error message: operation error S3: PutObject, PreconditionFailed
│ Lock Info:
│   ID:        0f1c-77
│   Operation: OperationTypeApply
│   Who:       ada@laptop
│   Created:   2026-01-31 10:11:12.131415 +0000 UTC
╵
"""
HALF_DONE = """
╷
│ Error: creating EC2 Fleet: operation error EC2: CreateFleet, FleetLimitExceeded: too
│ many
│
│   with module.fleets.module.fleet["a-small"].aws_ec2_fleet.this,
│   on modules/eks_fleet/main.tf line 96, in resource "aws_ec2_fleet" "this":
╵
╷
│ Error: Unreadable
╵
"""


@pytest.mark.parametrize(
    ("text", "expected", "said"),
    [
        (LOCKED, Conflict, "by ada@laptop for apply since 2026-01-31 10:11:12 UTC (wait, or"),
        (LOCKED, Conflict, "reconciler ci unlock --dir DIR 0f1c-77)"),
        ("│ Error: Saved plan is stale\n", Conflict, "plan again"),
        ("│ Error: No valid credential sources found\n", Forbidden, "AWS credentials"),
        ("│ Error: Failed to query available provider packages\n", ToolError, "PLUGIN_DIR"),
        (TWO_ERRORS, ToolError, "Error: One first / Error: Two"),
        ("", ToolError, "exit code 1"),
    ],
)  # fmt: skip
def test_failed_terraform_is_distinguished(
    text: str, expected: type[ReconcilerError], said: str
) -> None:
    """The message must say what to do next in one line."""
    error = terraform.failure("plan", finished(error=text), text)
    assert type(error) is expected
    assert said in str(error)


def test_failed_apply_names_each_resource_and_what_was_done() -> None:
    """Half an apply must say which half, in one line."""
    out = (
        "a: Creating...\na: Creation complete after 2s [id=x]\nb: Modifications complete after 1s\n"
    )
    error = terraform.failure("apply", finished(out=out), HALF_DONE)
    assert str(error) == (
        'terraform apply: 2 failed: module.fleets.module.fleet["a-small"].aws_ec2_fleet.this:'
        " creating EC2 Fleet: operation error EC2: CreateFleet, FleetLimitExceeded: too many /"
        " Unreadable (2 changes were carried out and are in the state; plan again for the rest)"
    )


def test_failed_launch_template_says_that_it_holds_up_all_fleets() -> None:
    """Whoever plans again as it is gets the same failure, and none of the other new fleets."""
    text = HALF_DONE.replace("aws_ec2_fleet", "aws_launch_template")
    error = terraform.failure("apply", finished(), text)
    assert str(error).endswith(
        " (0 changes were carried out and are in the state; no fleet is made or changed until every"
        " launch template is there: correct what failed, or take that fleet out, and plan again)"
    )


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"killed": True}, "may still be locked"),
        ({"interrupted_by": "SIGTERM"}, "released its lock"),
        ({"timed_out": True}, "longer than its limit"),
    ],
)
def test_stopped_terraform_says_whether_the_lock_is_free(
    parts: dict[str, object], said: str
) -> None:
    """Whoever comes next must know whether to unlock by hand."""
    assert said in str(terraform.failure("apply", finished(**parts), ""))
