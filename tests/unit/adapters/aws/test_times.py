"""Times in answers of AWS: read quickly, and as botocore reads them."""

from typing import Any

import botocore.utils
import pytest

from reconciler.adapters.aws.clients import parse_time


@pytest.mark.parametrize(
    "stated",
    [
        "2026-11-27T13:06:43Z",
        "2026-11-27T13:06:43.099Z",
        "2026-11-27T13:06:43.099319Z",
        "2026-11-27T13:06:43+02:00",
        "2026-11-27T13:06:43",
        "20261127T130643Z",
        "Fri, 27 Nov 2026 13:06:43 GMT",
        1795784803,
        1795784803.5,
        "1795784803.5",
    ],
)
def test_times_are_those_that_botocore_reads(stated: Any) -> None:
    """EC2 states ISO 8601 with Z, other services seconds since 1970."""
    assert parse_time(stated) == botocore.utils.parse_timestamp(stated)


def test_what_is_no_time_is_refused_as_botocore_does() -> None:
    """The call fails then, with the name of the service."""
    with pytest.raises(ValueError, match="Invalid timestamp"):
        parse_time("soonT")
