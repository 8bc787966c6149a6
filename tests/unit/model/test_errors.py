"""What is said of files that cannot be read and of servers that do not answer."""

import ssl
import urllib.error

import pytest
from urllib3.exceptions import ProtocolError, SSLError

from reconciler.model.errors import why_not_reached, why_unreadable


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (FileNotFoundError(2, "No such file or directory"), "no such file"),
        (IsADirectoryError(21, "Is a directory"), "is a directory"),
        (PermissionError(13, "Permission denied"), "this user may not read it"),
        (OSError(5, "Input/output error"), "cannot be read: Input/output error"),
        (ValueError("embedded null byte"), "cannot be read: embedded null byte"),
        (OSError(), "cannot be read: OSError"),
    ],
)
def test_unreadable_file_has_the_same_words_everywhere(error: Exception, said: str) -> None:
    """One message is looked up once."""
    assert why_unreadable(error) == said


REFUSED = ConnectionRefusedError(111, "Connection refused")
UNTRUSTED = ssl.SSLError(1, "certificate verify failed")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (urllib.error.URLError(REFUSED), "connection refused"),
        (ProtocolError("broken", OSError(104, "Connection reset")), "connection reset"),
        (SSLError(UNTRUSTED), "certificate verify failed"),
        (TimeoutError("timed out"), "TimeoutError"),
        (ValueError(), "ValueError"),
    ],
)
def test_server_that_is_not_reached_is_reported_in_the_systems_words(
    error: Exception, said: str
) -> None:
    """`NewConnectionError` does not say whether the port, the name or the certificate is wrong."""
    assert why_not_reached(error) == said


def test_causes_that_name_each_other_end() -> None:
    """An endless walk would hold up the loop that reports it."""
    error = ValueError()
    error.args = (error, error)
    assert why_not_reached(error) == "ValueError"
