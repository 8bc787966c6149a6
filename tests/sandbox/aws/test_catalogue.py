"""`reconciler catalogue` against emulated EC2 and a Price List API in the shape of AWS's."""

import io
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from reconciler.cli.main import run
from reconciler.config.catalogue import load_catalogue
from reconciler.sandbox.aws.front.control_client import ControlClient
from reconciler.sandbox.aws.server import AwsServer
from reconciler.sandbox.faults.aws import AwsFaults
from tests.sandbox.aws.pricing_server import nonsense, price_list, product

PRODUCTS = (
    product("m5.large", "0.0960000000"),
    product("m5.large", "0.1880000000", preInstalledSw="SQL Web"),
    product("m5.large", "0.0010000000", capacitystatus="UnusedCapacityReservation"),
    product("m6g.large", "0.0770000000"),
    product("g5.xlarge", "1.0060000000"),
    product("u9.free", "0.0000000000"),
    "{not json",
)
Asked = list[Mapping[str, Any]]


@dataclass(frozen=True)
class Done:
    """What one refresh left behind. One serves several tests: a thousand types take seconds."""

    file: Path
    asked: Asked
    said: Any
    calls: tuple[str, ...]
    """Actions of EC2 that were asked for, sorted."""


@pytest.fixture(scope="module")
def done(server: AwsServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Done]:
    """A refresh against the emulated AWS."""
    file = tmp_path_factory.mktemp("catalogue") / "catalogue.json"
    printed = io.StringIO()
    with price_list(*PRODUCTS) as (url, asked), pytest.MonkeyPatch.context() as patch:
        point_at(patch, server.url, url)
        server.calls.clear()
        with redirect_stdout(printed):
            assert refresh(file) == 0
        calls = sorted({call.action for call in server.calls.calls(service="ec2")})
        yield Done(file, list(asked), json.loads(printed.getvalue()), tuple(calls))


def point_at(monkeypatch: pytest.MonkeyPatch, aws: str, pricing: str) -> None:
    """Endpoints and dummy keys."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", aws)
    monkeypatch.setenv("AWS_ENDPOINT_URL_PRICING", pricing)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")


def refresh(out: Path, *args: str) -> int:
    """Run the command."""
    given = ["--region", "us-west-2", "--out", str(out), "--output", "json"]
    return run(["catalogue", "refresh", *given, *args])


def test_refresh_writes_what_ec2_says(
    done: Done,
) -> None:
    """A wrong figure misprices every plan that is made with the file."""
    said = done.said
    assert (said["region"], said["priced_on_demand"], said["unreadable"]) == ("us-west-2", 3, 1)
    made = load_catalogue(str(done.file))
    known = made["m5.large"]
    assert (known.arch, known.cpu_milli, known.memory_bytes) == ("amd64", 2000, 8 * 2**30)
    assert (known.pods_max, known.gpus) == (29, 0)
    assert str(known.on_demand_usd_per_hour) == "0.096"
    assert known.spot_usd_per_hour is not None
    assert made["m6g.large"].arch == "arm64"
    assert made["g5.xlarge"].gpus == 1
    assert made.region == "us-west-2"
    assert made.as_of in made.sources[0]


def test_price_list_is_asked_for_plain_linux_machines_of_the_region(
    done: Done,
) -> None:
    """Prices of Windows, of dedicated hosts or of another region are several times as high."""
    prices = done.asked
    filters = {f["Field"]: f["Value"] for f in prices[0]["Filters"]}
    assert prices[0]["target"].endswith("GetProducts")
    assert prices[0]["ServiceCode"] == "AmazonEC2"
    assert filters == {
        "regionCode": "us-west-2",
        "operatingSystem": "Linux",
        "tenancy": "Shared",
        "preInstalledSw": "NA",
        "capacitystatus": "Used",
    }
    assert len(prices) == 4


def test_refresh_again_gives_the_same_bytes(
    done: Done, server: AwsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is kept in git: a refresh without news must leave no diff."""
    again = tmp_path / "catalogue.json"
    with price_list(*PRODUCTS) as (url, _):
        point_at(monkeypatch, server.url, url)
        assert refresh(again) == 0
    assert again.read_bytes() == done.file.read_bytes()
    names = list(json.loads(again.read_text())["types"])
    assert names == sorted(names)


def test_refresh_asks_ec2_for_what_the_command_says_and_for_nothing_else(done: Done) -> None:
    """Whoever grants these rights alone must not be refused half-way."""
    assert done.calls == ("DescribeInstanceTypes", "DescribeSpotPriceHistory")


class Refusing:
    """Refreshes that fail, over a catalogue that is there already."""

    def __init__(
        self, folder: Path, patch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self._out, self._patch, self._capsys = folder / "catalogue.json", patch, capsys
        self._out.write_text("before")

    def told(self, aws: str, pricing: str) -> str:
        """The one line that is said; the file that was there is whole, and nothing beside it."""
        point_at(self._patch, aws, pricing)
        assert refresh(self._out) == 1
        printed = self._capsys.readouterr()
        assert (printed.out, printed.err.count("\n")) == ("", 1)
        assert self._out.read_text() == "before"
        assert list(self._out.parent.iterdir()) == [self._out]
        return printed.err


@pytest.fixture
def refusing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Refusing:
    """A folder with an older catalogue."""
    return Refusing(tmp_path, monkeypatch, capsys)


def test_refused_prices_leave_the_old_file_whole(server: AwsServer, refusing: Refusing) -> None:
    """Half a catalogue would make a plan with half the prices."""
    with price_list(denied=True) as (url, _):
        error = refusing.told(server.url, url)
    assert error == (
        "error: get_products us-east-1: AccessDeniedException: not allowed"
        " (it takes the right pricing:GetProducts; the catalogue is as it was)\n"
    )


@pytest.mark.parametrize("action", ["DescribeInstanceTypes", "DescribeSpotPriceHistory"])
def test_call_that_ec2_refuses_is_reported_with_the_right_that_is_missing(
    aws: AwsServer, refusing: Refusing, action: str
) -> None:
    """The prices may be had already: a file without types, or without spot prices, misleads."""
    refused = {"fault": "error", "actions": action, "code": "UnauthorizedOperation"}
    ControlClient(aws.url).put_faults(AwsFaults.model_validate({"calls": [refused]}), 0)
    with price_list(*PRODUCTS) as (url, _):
        error = refusing.told(aws.url, url)
    operation = re.sub(r"(?<!^)(?=[A-Z])", "_", action).lower()
    assert error.startswith(f"error: {operation} us-west-2: UnauthorizedOperation: ")
    assert error.endswith(f" (it takes the right ec2:{action}; the catalogue is as it was)\n")


TYPES = b"""<DescribeInstanceTypesResponse><instanceTypeSet>%s</instanceTypeSet>
</DescribeInstanceTypesResponse>"""


@pytest.mark.parametrize(
    ("answer", "said", "remedy"),
    [
        (b"<html>log in first", "ResponseParserError: Unable to parse response", "proxies"),
        (TYPES % b"", "listed no instance types", "check --region and AWS_ENDPOINT_URL"),
        (
            TYPES % b"<item><instanceType>m5.large</instanceType></item>",
            "none of its 1 entries can be read",
            "check AWS_ENDPOINT_URL, or use a newer version",
        ),
    ],
    ids=["no-xml", "no-types", "unreadable-types"],
)
def test_answer_of_something_else_is_no_catalogue(
    refusing: Refusing, answer: bytes, said: str, remedy: str
) -> None:
    """A proxy's own page, or an endpoint that is not EC2, would leave a file without types."""
    with price_list(*PRODUCTS) as (url, _), nonsense(answer) as ec2:
        error = refusing.told(ec2, url)
    assert error.startswith(f"error: describe_instance_types us-west-2: {said}")
    assert remedy in error
    assert error.endswith("the catalogue is as it was)\n")


def test_prices_that_cannot_be_read_do_not_make_old_prices_new(
    server: AwsServer, refusing: Refusing
) -> None:
    """The older prices would be written with the date of today."""
    with price_list("{not json", '{"product": {}}') as (url, _):
        error = refusing.told(server.url, url)
    assert error.startswith("error: get_products us-east-1: none of its 2 entries can be read (")


def test_unwritable_file_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A slip in the path is found before AWS is asked anything, and is no traceback."""
    assert refresh(tmp_path / "missing" / "catalogue.json") == 1
    assert "cannot be written" in capsys.readouterr().err


def test_refreshed_file_is_shown_with_date_and_source(
    done: Done, capsys: pytest.CaptureFixture[str]
) -> None:
    """A price without a date cannot be judged."""
    shown = ["catalogue", "show", "m5.l*", "--catalogue", str(done.file)]
    assert run([*shown, "--output", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [t["type"] for t in document["types"]] == ["m5.large"]
    assert document["types"][0]["on_demand_usd_per_hour"] == "0.096"
    assert run([*shown, "--output", "table"]) == 0
    assert "Prices of us-west-2 as of" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("service", "region", "operation", "said"),
    [
        ("ec2", "us-wst-2", "describe_fleets", "There is no Region us-wst-2"),
        ("pricing", "us-east-1", "get_products", "has no price list"),
    ],
)
def test_what_the_emulated_aws_does_not_have_is_refused_in_words(
    server: AwsServer, service: str, region: str, operation: str, said: str
) -> None:
    """A 500, and a traceback of its own, looks like a bug of whatever is tried against it."""
    session: Any = boto3.Session("test", "test", region_name=region)
    asked = {"ServiceCode": "AmazonEC2"} if service == "pricing" else {}
    with pytest.raises(ClientError, match=said) as caught:
        getattr(session.client(service, endpoint_url=server.url), operation)(**asked)
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400
