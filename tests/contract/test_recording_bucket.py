"""Recorded demand in a bucket of S3 (emulated, over HTTP)."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import EndpointConnectionError

from reconciler.adapters.recording import BucketLog, fetch_days, place_in_s3
from reconciler.adapters.recording.bucket import PlaceInS3
from reconciler.bootstrap.simulation.recording import recorded_demand
from reconciler.model.demand import DemandLine, PodDemand, PodEnd
from reconciler.model.errors import PortError, Unavailable
from reconciler.records.demand import encode_line
from reconciler.sandbox.aws.server import AwsServer
from tests.builders import make_spec
from tests.waiting import until

DAY = datetime(2026, 3, 10, 12, tzinfo=UTC)
WEEK_SECONDS = 7 * 86_400.0
PLACE = PlaceInS3(bucket="records", prefix="team/analytics")


@pytest.fixture
def server() -> Iterator[AwsServer]:
    """Emulated AWS."""
    with AwsServer() as running:
        yield running


@pytest.fixture
def s3(server: AwsServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A client, and the environment in which the program makes the same one."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "sandbox")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with closing(boto3.client("s3")) as client:
        client.create_bucket(Bucket=PLACE.bucket)
        yield client


def objects(s3: Any) -> dict[str, bytes]:
    """What is in the bucket, decompressed, by key."""
    found = {}
    for each in s3.list_objects_v2(Bucket=PLACE.bucket).get("Contents", []):
        body = s3.get_object(Bucket=PLACE.bucket, Key=each["Key"])["Body"].read()
        found[each["Key"]] = gzip.decompress(body) if each["Key"].endswith(".gz") else body
    return found


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("/var/demand", None),
        ("s3://b", PlaceInS3(bucket="b", prefix="")),
        ("s3://b/a/c/", PlaceInS3(bucket="b", prefix="a/c")),
    ],
)
def test_path_names_a_bucket_or_a_directory(path: str, place: PlaceInS3 | None) -> None:
    """A bucket that is taken for a directory would be made on the disk."""
    assert place_in_s3(path) == place


def test_lines_are_gathered_into_objects_by_day(s3: Any) -> None:
    """A request for each plan would be thousands a day."""
    failed: list[PortError] = []
    with closing(BucketLog(PLACE, s3, WEEK_SECONDS, failed.append)) as log:
        for seconds in (0, 100, 299, 301, 86_400):
            assert log.append(DAY + timedelta(seconds=seconds), b"%d\n" % seconds)
    assert list(objects(s3).values()) == [b"0\n100\n299\n", b"301\n", b"86400\n"]
    assert min(objects(s3)) == "team/analytics/demand-2026-03-10/120000000000.jsonl.gz"
    assert not failed


def test_lines_of_a_quiet_cluster_do_not_wait_for_more(s3: Any) -> None:
    """The last pods before a weekend would be written on Monday."""
    with closing(BucketLog(PLACE, s3, WEEK_SECONDS, print, object_seconds=0.2)) as log:
        assert log.append(DAY, b"one\n")
        until("the object is there", lambda: list(objects(s3).values()) == [b"one\n"] or None)


def test_old_objects_are_deleted_and_others_left_alone(s3: Any) -> None:
    """The bucket would grow without limit, or somebody else's object would go."""
    for key in (
        "team/analytics/notes",
        "team/analytics/demand-2020.csv",
        "team/analyticsother/demand-2020-01-01/x",
        "demand-2020",
    ):
        s3.put_object(Bucket=PLACE.bucket, Key=key, Body=b"mine")
    with closing(BucketLog(PLACE, s3, WEEK_SECONDS, print)) as log:
        for day in range(10):
            assert log.append(DAY + timedelta(days=day), b"line\n")
    keys = [key for key, body in sorted(objects(s3).items()) if body != b"mine"]
    assert keys[0].startswith("team/analytics/demand-2026-03-12/")
    assert len(keys) == 8
    assert len(objects(s3)) == 12


def test_one_cycle_of_a_clock_that_is_far_ahead_deletes_nothing(s3: Any) -> None:
    """All recordings were gone after it."""
    days = [0, 1, 2, 300, 3]
    with closing(BucketLog(PLACE, s3, WEEK_SECONDS, print)) as log:
        for day in days:
            assert log.append(DAY + timedelta(days=day), b"line\n")
    kept = {f"{DAY + timedelta(days=day):%Y-%m-%d}" for day in days}
    assert {key.partition("demand-")[2][:10] for key in objects(s3)} == kept


def test_bucket_that_does_not_answer_is_reported_and_its_lines_are_kept_for_later(
    server: AwsServer, s3: Any
) -> None:
    """The loop would stop scaling, or an hour of demand would be lost, for an outage of S3."""
    failed: list[PortError] = []
    told = threading.Event()

    def fails(error: PortError) -> None:
        failed.append(error)
        told.set()

    nowhere = boto3.client(
        "s3",
        endpoint_url="http://127.0.0.1:1",
        config=Config(retries={"max_attempts": 0}, connect_timeout=1),
    )
    with closing(BucketLog(PLACE, nowhere, WEEK_SECONDS, fails, object_seconds=0.1)) as log:
        assert log.append(DAY, b"one\n")
        assert told.wait(60)
        log._s3 = s3
        until("the object is there", lambda: list(objects(s3).values()) == [b"one\n"] or None)
    assert isinstance(failed[0], Unavailable)
    assert "s3://records/team/analytics" in str(failed[0])
    assert server.url not in str(failed[0])


EXPIRED = RuntimeError(
    "Credentials were refreshed, but the refreshed credentials are still expired."
)


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (EXPIRED, "s3://records/team/analytics: the credentials have expired"),
        (OSError(24, "Too many open files"), "S3 could not be asked: too many open files"),
    ],
    ids=["credentials", "files"],
)
def test_what_keeps_s3_from_being_asked_is_reported_in_its_words_and_no_line_is_lost(
    raised: Exception, told: str
) -> None:
    """It was reported as a bug that loses lines, although they reached S3 later."""

    class Away:
        def __init__(self) -> None:
            self.raises = True
            self.put: list[bytes] = []

        def put_object(self, **given: Any) -> None:
            if self.raises:
                raise raised
            self.put.append(gzip.decompress(given["Body"]))

        def get_paginator(self, _name: str) -> Any:
            return self

        def paginate(self, **_given: Any) -> list[Any]:
            return []

    failed: list[PortError] = []
    away = Away()
    log = BucketLog(PLACE, away, WEEK_SECONDS, failed.append)
    log.append(DAY, b"a\n")
    log.append(DAY + timedelta(hours=1), b"b\n")
    until(lambda: f"a report, {failed}", lambda: failed)
    away.raises = False
    log.close()
    assert all(told in str(port_error) for port_error in failed)
    assert away.put == [b"a\n", b"b\n"]


def test_profile_that_does_not_exist_is_no_bug_of_the_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`record` printed the form for bugs where AWS_PROFILE was misspelt."""
    monkeypatch.setenv("AWS_PROFILE", "nope")
    with pytest.raises(Unavailable, match=r"ProfileNotFound: .*nope"):
        recorded_demand("s3://records/team", None)


def test_endpoint_that_is_no_address_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for AWS_ENDPOINT_URL without its scheme."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", "nowhere")
    with pytest.raises(Unavailable, match="Invalid endpoint: nowhere"):
        recorded_demand("s3://records/team", None)


def test_lines_of_a_long_outage_are_put_when_it_is_over(s3: Any) -> None:
    """Every line that came while S3 did not answer would be lost, and the end of a pod with it."""

    class Outage:
        """S3, which answers nothing at first."""

        over = False

        def put_object(self, **arguments: Any) -> Any:
            if not self.over:
                raise EndpointConnectionError(endpoint_url="https://s3")
            return s3.put_object(**arguments)

        def __getattr__(self, name: str) -> Any:
            return getattr(s3, name)

    outage, failed = Outage(), list[PortError]()
    with closing(BucketLog(PLACE, outage, WEEK_SECONDS, failed.append)) as log:
        for seconds in (0, 301, 400, 700, 86_400):
            assert log.append(DAY + timedelta(seconds=seconds), b"%d\n" % seconds)
        until("the outage was noticed", lambda: len(failed) >= 4 or None)
        outage.over = True
    assert list(objects(s3).values()) == [b"0\n", b"301\n400\n", b"700\n", b"86400\n"]


def test_days_are_fetched_and_read_as_one_demand(s3: Any, tmp_path: Path) -> None:
    """What was recorded must be what a simulation reads."""
    pod = PodDemand(at=DAY, id="long", spec=make_spec("1"), namespace="team")
    end = PodEnd(at=DAY + timedelta(days=2), id="long")
    with closing(BucketLog(PLACE, s3, WEEK_SECONDS, print)) as log:
        days: dict[int, list[DemandLine]] = {0: [pod], 1: [pod], 2: [pod, end]}
        for day, lines in days.items():
            assert log.append(DAY + timedelta(days=day), b"".join(map(encode_line, lines)))
    (read,) = recorded_demand(str(PLACE), None).lines
    assert isinstance(read, PodDemand)
    assert read.until == end.at
    fetch_days(PLACE, s3, "2026-03-11", tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
