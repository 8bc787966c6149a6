"""What must never be readable in a log."""

from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.telemetry.scrubbing import HIDDEN, Scrubber, without_account

QUICK = settings(max_examples=60, deadline=None, derandomize=True)
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
        ("GET https://gitlab.example.com/api?access_token=abcd1234&x=1", "abcd1234"),
        ('{"access_token": "abcd1234", "expires_in": 60}', "abcd1234"),
        ("sent PRIVATE-TOKEN: abcd1234", "abcd1234"),
        ("client_secret=abcd1234 was refused", "abcd1234"),
        ("clone of https://abcd1234@example.com/x.git failed", "abcd1234"),
        ("clone of https://bot:p@ss1234@example.com/x.git failed", "ss1234"),
        ("clone of ssh://git:abcd1234@example.com/x.git failed", "abcd1234"),
        ("clone of http::https://u:abcd1234@example.com/x failed", "abcd1234"),
        ("clone of https://u:ab/abcd1234@example.com/x failed", "abcd1234"),
        ("https:/u:abcd1234@example.com/x: no such file", "abcd1234"),
        ("no scheduler at tcp://u:abcd1234@127.0.0.1:1", "abcd1234"),
        ("GET https://example.com/?key=abcd1234&x=1", "abcd1234"),
        ("GET https://example.com/?x=1&sig=ab%2F1234", "ab%2F1234"),
        ("GET https://example.com/?oauth_token_secret=ab1", "ab1"),
        ("POST https://hooks.slack.com/workflows/T000/A000/123/abcd1234 failed", "abcd1234"),
        ("POST https://hooks.slack.com/triggers/E000/123/abcd1234 failed", "abcd1234"),
        ("runner glrt-t1_abcdefghij0123456789 is gone", "abcdefghij"),
        ("deploy token gldt-abcdefghij0123456789", "abcdefghij"),
        (
            "key -----BEGIN EC PRIVATE KEY-----\nabcd1234\n-----END EC PRIVATE KEY----- x",
            "abcd1234",
        ),
        ('{"key": "-----BEGIN PRIVATE KEY-----\\nabcd1234\\n"}', "abcd1234"),
        ("-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nabcd1234", "abcd1234"),
        ("<SecretAccessKey>ab/cd+1234</SecretAccessKey>", "ab/cd+1234"),
        ("<SessionToken>FQoG/abcd1234=</SessionToken><Expiration>", "abcd1234"),
        ("<launchTemplateData><userData>YWJjZDEyMzQ=</userData>", "YWJjZDEyMzQ"),
        ("headers={'X-Amz-Security-Token': b'FQoG/abcd1234', 'X': b'1'}", "abcd1234"),
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
        "remote": "ssh://git@example.com/team/fleets.git",
        "query": "https://example.com:8080/x?service=git-upload-pack&keys=3&by=ada@example.com",
        "mail": "ada@example.com",
        "why": "the token expired; global-accelerator-of-the-team is no secret",
        "left": "tokens: 12 of 30 left",
    }
    assert Scrubber().value(event) == event


def test_endless_structure_ends() -> None:
    """A value that contains itself must not end the program."""
    loop: list[object] = []
    loop.append(loop)
    assert HIDDEN in str(Scrubber().value(loop))


SECRETS = st.text(min_size=8, max_size=40)


@QUICK
@given(SECRETS, st.text(max_size=20), st.text(max_size=20))
def test_known_secret_is_gone_whatever_stands_around_it(
    secret: str, before: str, after: str
) -> None:
    """Each library quotes it in its own way: as it is, escaped in an address, as a key."""
    scrubber = Scrubber([secret])
    escaped = quote(secret, safe="", errors="surrogatepass")
    for text in (f"{before}{secret}{after}", f"https://x.example/?q={escaped}"):
        scrubbed = scrubber.text(text)
        assert secret not in scrubbed.replace(HIDDEN, "") or secret in f"{before}{after}"
        assert escaped not in scrubbed.replace(HIDDEN, "") or escaped in f"{before}{after}"
    assert secret not in str(scrubber.value({secret: 1})) or secret in "{'***': 1}"


KINDS = st.sampled_from(
    [
        "https://X@h/",
        "https://u:X@h/",
        "?access_token=X",
        "private_token=X&",
        "glrt-X",
        "gldt-X",
        "https://hooks.slack.com/workflows/X",
        "-----BEGIN PRIVATE KEY-----\nX",
        "Bearer X",
    ]
)


@QUICK
@given(KINDS, st.from_regex(r"[A-Za-z0-9]{24}", fullmatch=True), st.text(max_size=10))
def test_secret_of_a_known_kind_is_gone(kind: str, secret: str, before: str) -> None:
    """Nobody told us of it: its look must do."""
    text = f"{before} {kind.replace('X', secret)}"
    assert secret not in Scrubber().text(text)


LONG = 1_000_000
"""A text of this length may come from anybody who may create one object: etcd takes 1.5 MiB."""
REPEATED = (
    "-----BEGIN ",
    "-----BEGIN PRIVATE KEY-----END ",
    "://:a",
    "://a:b@",
    "a:/:",
    "https://a",
    "https://slack",
    "?a&b",
    "?token",
    "AKIA",
    "X-Amz-Signature=&",
    "basic ",
    "eyJ-",
    "eyJ-aaaaaaaa.",
    "ghp_",
    "glpat-",
    "token:  ",
    "arn:aws-",
)
"""Beginnings of what each pattern looks for, with as much as possible in them that may go on."""


@pytest.mark.parametrize("text", REPEATED)
def test_work_for_a_text_grows_no_faster_than_its_length(text: str) -> None:
    """Nobody plans while a text of a stranger is searched: work by the square takes many minutes.

    This test would not end within the time that a test has.
    """
    whole = text * (LONG // len(text))
    assert without_account(whole)


def test_token_is_hidden_wherever_it_begins_in_a_word() -> None:
    """Names of files and of Secrets precede it with a hyphen."""
    token = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrOHMifQ.c2lnbmF0dXJl"
    scrubber = Scrubber()
    assert scrubber.text(f"a-b-{token}") == f"a-b-{HIDDEN}"
    assert scrubber.text(f"www.example1.{token}") == f"www.example1.{HIDDEN}"
    assert scrubber.text(f"{token} and {token}") == f"{HIDDEN} and {HIDDEN}"
    assert scrubber.text(f"a{token[:20]}") == f"a{token[:20]}"


def test_text_is_cut_after_its_secrets_are_hidden() -> None:
    """Half of a secret at the end of a cut text would look like none."""
    secret = "hunter22" * 4
    scrubber = Scrubber([secret], characters_max=20)
    assert scrubber.text(f"{'a' * 10}{secret}{'b' * 100}") == f"{'a' * 10}{HIDDEN}b…bbbbb"


def test_end_of_a_text_that_is_cut_stays() -> None:
    """The last line of a traceback says what failed."""
    scrubber = Scrubber(characters_max=40)
    cut = scrubber.text("Traceback:\n" + "frame\n" * 100 + "ValueError")
    assert len(cut) == 40
    assert cut.startswith("Traceback:\nframe\n")
    assert cut.endswith("ValueError")
