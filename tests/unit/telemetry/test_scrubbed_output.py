"""Secrets never reach a log."""

import pytest

from reconciler.telemetry.scrubbing import scrub, secrets_of


@pytest.mark.parametrize(
    "secret",
    [
        "AKIAIOSFODNN7EXAMPLE",
        "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "glpat-abcdefghij0123456789",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_text_that_looks_like_a_key_is_masked(secret: str) -> None:
    """Vendors quote keys in their errors."""
    assert scrub(f"refused {secret} for you") == "refused *** for you"


def test_password_of_an_address_is_masked() -> None:
    """Git repeats the address it was given."""
    assert scrub("fatal: https://bot:hunter2@example.com/x") == "fatal: https://***@example.com/x"


def test_secrets_of_the_environment_are_known_by_their_names() -> None:
    """The longest goes first, so that no half of it is left."""
    environment = {
        "AWS_SECRET_ACCESS_KEY": "hunter22",
        "MY_TOKEN": "hunter22hunter22",
        "RECONCILER_GIT_TOKEN_FILE": "/run/secrets/token",
        "HOME": "/home/ada",
        "SHORT_TOKEN": "abc",
    }
    assert secrets_of(environment) == ("hunter22hunter22", "hunter22")
    assert scrub("a hunter22hunter22 b hunter22", secrets_of(environment)) == "a *** b ***"


def test_secret_with_a_newline_at_its_end_is_masked_without_it() -> None:
    """Secrets are made with `echo`, and what repeats them has read one line."""
    assert scrub("a hunter22 b", secrets_of({"MY_TOKEN": "hunter22\n"})) == "a *** b"
