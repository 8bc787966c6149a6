"""What botocore raises becomes an error of the ports, whatever class botocore gives it."""

import errno
import os
from typing import Any

import pytest
from botocore.credentials import RefreshableCredentials
from botocore.exceptions import ClientError
from botocore.parsers import ResponseParserError

from reconciler.adapters.aws.errors import translated
from reconciler.model.errors import Forbidden, OutcomeUnknown, Unavailable


@pytest.mark.parametrize(("changing", "kind"), [(False, Unavailable), (True, OutcomeUnknown)])
def test_answer_that_is_no_answer_of_aws_is_an_error_of_the_port(
    changing: bool, kind: type[Exception]
) -> None:
    """A proxy's page in place of XML is none of botocore's own errors, and would end the loop."""
    with (
        pytest.raises(kind, match="describe_fleets: ResponseParserError: no XML"),
        translated("describe_fleets", changing=changing),
    ):
        raise ResponseParserError("no XML")


@pytest.mark.parametrize(("changing", "kind"), [(False, Unavailable), (True, OutcomeUnknown)])
def test_error_of_this_machine_is_an_error_of_the_port(
    changing: bool, kind: type[Exception]
) -> None:
    """A process that may open no more files when a client is made must not end by that."""
    error = OSError(errno.EMFILE, os.strerror(errno.EMFILE), "endpoints.json")
    with (
        pytest.raises(kind, match=r"ec2 us-west-2: too many open files: endpoints\.json"),
        translated("ec2 us-west-2", changing=changing),
    ):
        raise error


@pytest.mark.parametrize("changing", [False, True])
def test_credentials_that_are_expired_when_refreshed_are_denied(changing: bool) -> None:
    """A source that renews late, or a clock that is ahead, would end the program."""
    expired = {
        "access_key": "key",
        "secret_key": "secret",
        "token": "token",
        "expiry_time": "2020-01-01T00:00:00Z",
    }
    credentials = RefreshableCredentials.create_from_metadata(
        expired, refresh_using=lambda: expired, method="a-process"
    )
    with (
        pytest.raises(Forbidden, match=r"describe_fleets: .*check their source and this machine's"),
        translated("describe_fleets", changing=changing),
    ):
        credentials.get_frozen_credentials()


def test_refusal_of_credentials_asks_for_a_look_at_them_and_at_the_clock() -> None:
    """EC2 repeats its code as the message, which is no hint at a clock that is wrong."""
    answer: Any = {"Error": {"Code": "RequestExpired", "Message": "RequestExpired"}}
    with pytest.raises(Forbidden) as caught, translated("describe_fleets", changing=False):
        raise ClientError(answer, "DescribeFleets")
    assert str(caught.value) == (
        "describe_fleets: RequestExpired (check the credentials and this machine's clock)"
    )


def test_bug_of_ours_is_no_answer_of_aws() -> None:
    """It would show as a missing right for weeks."""
    with pytest.raises(RuntimeError, match="bug"), translated("describe_fleets", changing=False):
        raise RuntimeError("bug")
