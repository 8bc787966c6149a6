"""What must never be readable in a log."""

import pytest

from reconciler.telemetry.scrubbing import HIDDEN, Scrubber

HOOK = "https://hooks.slack.com/services/T000/B000/abcdefghijkl"


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        (f"POST {HOOK}: 404", "abcdefghijkl"),
        ("clone of https://bot:ghp_abcdefghijklmnop@example.com/x.git failed", "ghp_"),
        ("key AKIAABCDEFGHIJKLMNOP is inactive", "AKIAABCDEFGHIJKLMNOP"),
        ("GET /x?X-Amz-Signature=0123456789abcdef&X=1", "0123456789abcdef"),
        ("Authorization: Bearer abcdefghijk.lmnop", "abcdefghijk"),
        (
            "token eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrOHMifQ.c2lnbmF0dXJl is expired",
            "eyJpc3MiOiJrOHMifQ",
        ),
    ],
)
def test_secret_in_a_text_is_hidden(text: str, secret: str) -> None:
    """Errors of libraries quote what was sent."""
    scrubbed = Scrubber().text(text)
    assert secret not in scrubbed
    assert HIDDEN in scrubbed


def test_known_secret_is_hidden_wherever_it_appears() -> None:
    """A hook at a company's own address looks like any other."""
    scrubber = Scrubber(["https://chat.example.com/hook/1234"])
    found = scrubber.value({"reasons": ["POST https://chat.example.com/hook/1234 failed"]})
    assert found == {"reasons": [f"POST {HIDDEN} failed"]}


@pytest.mark.parametrize(
    "key", ["password", "git_token", "SLACK_HOOK", "UserData", "client_secret"]
)
def test_value_of_a_secret_key_is_hidden_whole(key: str) -> None:
    """A password has no shape to recognise it by."""
    assert Scrubber().value({key: "hunter2"}) == {key: HIDDEN}


def test_ordinary_values_stay_as_they_are() -> None:
    """A log in which ids are hidden explains nothing."""
    event = {
        "node": "ip-10-0-0-7.us-west-2.compute.internal",
        "instance": "i-0123456789abcdef0",
        "fleet_id": "fleet-12a34b56-7890",
        "before": 2,
        "after": None,
        "reason": "11 pending pods need 3 more nodes",
        "url": "https://example.com/team/fleets.git",
    }
    assert Scrubber().value(event) == event


def test_endless_structure_ends() -> None:
    """A value that contains itself must not end the program."""
    loop: list[object] = []
    loop.append(loop)
    assert HIDDEN in str(Scrubber().value(loop))
