"""The Forge port: GitHub and GitLab over HTTP, with what goes wrong there."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.adapters.forge import ForgeSettings, forge
from reconciler.adapters.forge.settings import ForgeKind
from reconciler.model.errors import (
    Forbidden,
    NotFound,
    OutcomeUnknown,
    PortError,
    ReconcilerError,
    Throttled,
    ToolError,
    Unavailable,
)
from reconciler.ports.forge import CommitStatus, Forge, StatusState
from reconciler.ports.repository import CommitId
from tests.forge_server import PROJECT, TOKEN, Fault, ForgeState, forge_server

COMMIT = CommitId("0123456789abcdef0123456789abcdef01234567")
STATUS = CommitStatus(context="fleet-reconciler/a.yaml", state="failure", description="3 faults")


@pytest.fixture(params=["github", "gitlab"])
def kind(request: pytest.FixtureRequest) -> ForgeKind:
    """Each forge."""
    return "github" if request.param == "github" else "gitlab"


@pytest.fixture
def server(kind: ForgeKind) -> Iterator[ForgeState]:
    """The forge's twin."""
    with forge_server(kind) as state:
        yield state


def port_to(server: ForgeState, kind: ForgeKind, token: str = TOKEN) -> Forge:
    """The adapter, pointed at the twin."""
    return forge(
        ForgeSettings(
            kind=kind,
            api_url=server.address,
            repository=PROJECT,
            token=token,
            timeout_seconds=20.0,
        )
    )


def opened(port: Forge) -> int:
    """Ask for the one pull request of these tests."""
    return port.open_pull_request("reconciler/abc", "main", "Render", "Because.").number


def test_status_arrives_beside_its_commit(server: ForgeState, kind: ForgeKind) -> None:
    """A person who pushed a typo looks at the commit, not at our log."""
    port_to(server, kind).set_status(COMMIT, STATUS)
    [(commit, body)] = server.statuses
    assert commit == COMMIT
    assert body["description"] == "3 faults"
    assert body["state"] == ("failure" if kind == "github" else "failed")
    assert body.get("context", body.get("name")) == "fleet-reconciler/a.yaml"


def test_status_said_twice_does_no_harm(server: ForgeState, kind: ForgeKind) -> None:
    """GitLab refuses the state that a status has already; the loop must not take it for trouble."""
    port = port_to(server, kind)
    port.set_status(COMMIT, STATUS)
    port.set_status(COMMIT, STATUS)
    assert server.statuses


def test_statuses_are_read_back_the_newest_of_each(server: ForgeState, kind: ForgeKind) -> None:
    """The status chain follows the pipeline by them."""
    port = port_to(server, kind)
    for context, state in (("a", "pending"), ("a", "success"), ("b", "failure")):
        told: StatusState = "pending" if state == "pending" else "success"
        port.set_status(
            COMMIT,
            CommitStatus(
                context=context, state="failure" if state == "failure" else told, description=""
            ),
        )
    assert port.statuses(COMMIT) == {"a": "success", "b": "failure"}
    assert port.statuses(CommitId("f" * 40)) == {}


def test_pull_request_is_opened_once(server: ForgeState, kind: ForgeKind) -> None:
    """A restarted loop must not open a second one."""
    port = port_to(server, kind)
    assert opened(port) == opened(port) == 1
    [request] = server.pull_requests
    assert (request["source"], request["target"]) == ("reconciler/abc", "main")
    assert (request["title"], request["body"]) == ("Render", "Because.")


def test_pull_request_that_people_closed_stays_closed(server: ForgeState, kind: ForgeKind) -> None:
    """They said no to this config commit; asking again is nagging."""
    port = port_to(server, kind)
    opened(port)
    request = port.pull_request("reconciler/abc", "main")
    assert request is not None
    assert not request.closed
    server.pull_requests[0]["state"] = "closed"
    assert opened(port) == 1
    assert len(server.pull_requests) == 1
    assert port.pull_request("reconciler/abc", "main") == replace(request, closed=True)
    server.pull_requests[0]["state"] = "merged"
    assert port.pull_request("reconciler/abc", "main") is None


def test_pull_request_that_was_merged_is_not_taken_for_a_new_one(
    server: ForgeState, kind: ForgeKind
) -> None:
    """Whoever waits for a review would wait for one that ended."""
    port = port_to(server, kind)
    opened(port)
    server.pull_requests[0]["state"] = "merged"
    assert opened(port) == opened(port) == 2
    assert len(server.pull_requests) == 2


def test_pull_request_of_a_fork_is_not_taken_for_the_loops_own(
    server: ForgeState, kind: ForgeKind
) -> None:
    """A stranger's branch may have the same name: nobody would be asked to review the render."""
    server.opened("reconciler/abc", "main", "Theirs", "", fork=True)
    port = port_to(server, kind)
    assert opened(port) == 2
    server.pull_requests[0]["state"] = "closed"
    server.opened("reconciler/abc", "main", "Theirs again", "", fork=True)
    assert opened(port) == 2


def test_pull_request_opened_by_another_replica_meanwhile_is_found(
    server: ForgeState, kind: ForgeKind
) -> None:
    """Two loops may open it in the same moment; both must end well."""
    port = port_to(server, kind)
    opened(port)
    server.hides_listing = True
    assert opened(port) == 1


def test_lost_reply_of_a_write_is_unknown_and_found_next_time(
    server: ForgeState, kind: ForgeKind
) -> None:
    """A write that may have happened is never sent blindly again."""
    port = port_to(server, kind)
    server.faults = [Fault(cut=True), Fault(cut=True), Fault(cut=True)]
    with pytest.raises(Unavailable):
        opened(port)
    server.requests.clear()
    server.hides_listing = True
    port.open_pull_request("other", "main", "", "")
    server.hides_listing = True
    server.faults = [Fault(status=200, body=[]), Fault(carry_out=True, cut=True)]
    with pytest.raises(OutcomeUnknown):
        opened(port)
    assert opened(port) == 2
    assert len(server.pull_requests) == 2


def test_comment_replaces_the_one_under_its_marker(server: ForgeState, kind: ForgeKind) -> None:
    """Forty pushes must not leave forty summaries on a pull request."""
    server.comments = [{"id": n, "number": 7, "body": f"words {n}"} for n in range(150)]
    port = port_to(server, kind)
    for body in ("first", "second"):
        port.comment(7, "clusters/a", body)
        port.comment(7, "clusters/b", body)
    port.comment(8, "clusters/a", "another pull request")
    ours = [c["body"].partition("\n")[2] for c in server.comments[150:]]
    assert ours == ["second", "second", "another pull request"]


@pytest.mark.parametrize("as_a_bot", [True, False])
def test_comment_of_somebody_else_is_left_alone(
    server: ForgeState, kind: ForgeKind, *, as_a_bot: bool
) -> None:
    """Its author could change the plan that reviewers read in it."""
    port = port_to(server, kind)
    port.comment(7, "plan", "ours")
    [own] = server.comments
    mallory = {"user": {"login": "mallory", "type": "User"}, "author": {"username": "mallory"}}
    server.comments.insert(0, {**own, "id": 400, **mallory})
    if as_a_bot and kind == "github":  # the token of a workflow may not ask who it is
        server.hides_user = True
        own["user"] = {"login": "github-actions[bot]", "type": "Bot"}
    port.comment(7, "plan", "ours, again")
    said = {comment["id"]: comment["body"].partition("\n")[2] for comment in server.comments}
    assert said == {400: "ours", 500: "ours, again"}


def test_comment_is_nobodys_while_it_is_not_known_who_asks(
    server: ForgeState, kind: ForgeKind
) -> None:
    """One failed question, and for as long as the loop runs anybody's comment would be ours."""
    port_to(server, kind).comment(7, "plan", "ours")
    [own] = server.comments
    mallory = {"user": {"login": "mallory", "type": "Bot"}, "author": {"username": "mallory"}}
    server.comments.insert(0, {**own, "id": 400, **mallory})
    port = port_to(server, kind)
    server.user_faults = 1
    with pytest.raises(Unavailable):
        port.comment(7, "plan", "lost")
    port.comment(7, "plan", "ours, again")
    said = {comment["id"]: comment["body"].partition("\n")[2] for comment in server.comments}
    assert said == {400: "ours", 500: "ours, again"}


def test_comment_of_a_forge_that_never_says_who_asks_is_written_anew() -> None:
    """A maintainer's token may change what others wrote."""
    with forge_server("gitlab") as server:
        server.hides_user = True
        port = port_to(server, "gitlab")
        port.comment(7, "plan", "first")
        port.comment(7, "plan", "second")
        said = [comment["body"].partition("\n")[2] for comment in server.comments]
    assert said == ["first", "second"]


def test_comment_that_is_too_long_is_cut_and_says_so(server: ForgeState, kind: ForgeKind) -> None:
    """A forge refuses a long one whole, and the reviewer would see nothing."""
    port_to(server, kind).comment(7, "plan", "x" * 2_000_000)
    [comment] = server.comments
    assert len(comment["body"]) <= (65_536 if kind == "github" else 1_000_000)
    assert "cut" in comment["body"][-60:]


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (Fault(status=500), Unavailable),
        (Fault(status=502), Unavailable),
        (Fault(status=403, body={"message": "Resource not accessible"}), Forbidden),
        (Fault(status=404, body={"message": "Not Found"}), NotFound),
        (Fault(status=429, headers={"Retry-After": "7"}), Throttled),
        (Fault(status=403, headers={"Retry-After": "7"}), Throttled),
        (Fault(status=302, headers={"Location": "https://elsewhere.example/"}), PortError),
    ],
)
def test_refusal_becomes_the_error_that_names_the_next_step(
    server: ForgeState, kind: ForgeKind, fault: Fault, expected: type[PortError]
) -> None:
    """The loop waits, asks a person, or gives up by class; never by text."""
    server.faults = [fault]
    with pytest.raises(expected) as caught:
        port_to(server, kind).set_status(COMMIT, STATUS)
    if isinstance(caught.value, Throttled):
        assert caught.value.retry_after_seconds == 7.0


@pytest.mark.parametrize(
    "fault",
    [
        Fault(status=500, body={"message": "down", "errors": 1}),
        Fault(status=500, body={"errors": True, "error": {"a": 1}}),
        Fault(status=422, body={"message": ["a"], "errors": {"x": [1]}}),
        Fault(status=429, headers={"Retry-After": "\u00b2"}),
        Fault(status=429, headers={"Retry-After": "9" * 400}),
        Fault(status=429, headers={"x-ratelimit-reset": "\u00b2"}),
        Fault(status=429, headers={"x-ratelimit-reset": "9" * 400}),
        Fault(status=403, headers={"Retry-After": "-1"}),
    ],
)
def test_malformed_refusal_is_a_refusal_all_the_same(
    server: ForgeState, kind: ForgeKind, fault: Fault
) -> None:
    """A status is worth no failed apply, and no ended loop."""
    server.faults = [fault]
    with pytest.raises(PortError) as caught:
        port_to(server, kind).set_status(COMMIT, STATUS)
    if isinstance(caught.value, Throttled):
        assert caught.value.retry_after_seconds is None


@pytest.mark.parametrize(
    "entry",
    [
        {"number": float("inf"), "iid": float("inf")},
        {"number": "\u00b2", "iid": "\u00b2"},
        {"number": True, "iid": True},
        {"number": 0, "iid": 0},
        {"number": [], "iid": {}},
        {"number": 7, "iid": 7, "html_url": 1, "web_url": None},
        ["number"],
        None,
    ],
)
def test_malformed_pull_request_is_none(
    server: ForgeState, kind: ForgeKind, entry: dict[str, object]
) -> None:
    """One odd answer ended the second loop."""
    if isinstance(entry, dict):
        entry = {"html_url": "https://a.example/7", "web_url": "https://a.example/7", **entry}
    server.faults = [Fault(status=200, body=[entry])]
    with pytest.raises(Unavailable, match=r"answered no (pull|merge) request"):
        opened(port_to(server, kind))


def test_malformed_statuses_are_left_out(server: ForgeState, kind: ForgeKind) -> None:
    """One odd entry must not hide the others."""
    good = {"state": "success", "status": "success", "context": "a", "name": "a"}
    odd = [{"state": []}, {"state": {}, "context": []}, {"state": None}, [], "x", None]
    server.faults = [Fault(status=200, body=[*odd, good])]
    assert port_to(server, kind).statuses(COMMIT)["a"] == "success"


def test_reading_is_throttled_as_writing_is(server: ForgeState, kind: ForgeKind) -> None:
    """Whoever waits for a limit to end must not be sent to look for a broken network."""
    server.faults = [Fault(status=429, headers={"Retry-After": "7"})]
    with pytest.raises(Throttled) as caught:
        port_to(server, kind).statuses(COMMIT)
    assert caught.value.retry_after_seconds == 7.0


def test_answer_that_is_no_json_is_reported(server: ForgeState, kind: ForgeKind) -> None:
    """A proxy's login page must not become a traceback."""
    server.faults = [Fault(status=200, body="<html>")]
    with pytest.raises(Unavailable):
        opened(port_to(server, kind))


def test_wrong_token_is_forbidden_and_never_shown(server: ForgeState, kind: ForgeKind) -> None:
    """An operator is sent to the credentials without reading them in a log."""
    with pytest.raises(Forbidden) as caught:
        port_to(server, kind, "wr0ng-token-value").set_status(COMMIT, STATUS)
    assert "wr0ng" not in str(caught.value)


def test_token_with_a_newline_at_its_end_is_the_token(server: ForgeState, kind: ForgeKind) -> None:
    """Secrets are made with `echo`; git takes such a token, and so must the forge."""
    assert opened(port_to(server, kind, token=f"{TOKEN}\n")) == 1


def test_token_that_no_header_can_hold_is_reported_and_never_shown(
    server: ForgeState, kind: ForgeKind
) -> None:
    """Two lines in one Secret ended the program, with the token in its last words."""
    for broken in (f"{TOKEN}\n{TOKEN}", f"{TOKEN}\u2026"):
        with pytest.raises(ToolError) as caught:
            opened(port_to(server, kind, token=broken))
        assert TOKEN not in str(caught.value)


def test_echoed_token_is_masked(server: ForgeState, kind: ForgeKind) -> None:
    """Some proxies repeat what they were sent."""
    server.faults = [Fault(status=403, body={"message": f"bad header {TOKEN}"})]
    with pytest.raises(Forbidden) as caught:
        port_to(server, kind).set_status(COMMIT, STATUS)
    assert TOKEN not in str(caught.value)


def test_token_file_is_read_anew(server: ForgeState, kind: ForgeKind, tmp_path: Path) -> None:
    """A rotated Secret must not need a restart."""
    file = tmp_path / "token"
    file.write_text("old-token-value")
    settings = ForgeSettings(kind=kind, api_url=server.address, repository=PROJECT, token_file=file)
    port = forge(settings)
    with pytest.raises(Forbidden):
        port.set_status(COMMIT, STATUS)
    file.write_text(f"{TOKEN}\n")
    port.set_status(COMMIT, STATUS)
    file.write_text("")
    with pytest.raises(ReconcilerError, match="empty"):
        port.set_status(COMMIT, STATUS)
