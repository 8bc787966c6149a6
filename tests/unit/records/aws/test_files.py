"""Files with answers of the AWS CLI, and files that hold something else."""

import json

import pytest

from reconciler.model.errors import InputError
from reconciler.model.ids import Region
from reconciler.records.aws import decode_cloud, split_answers

HOME = Region("us-west-2")


def test_file_says_its_region_or_is_from_home() -> None:
    """Two regions' fleets of one name are two fleets."""
    body = json.dumps([{"Fleets": []}, {"Fleets": [], "Region": "us-east-1"}]).encode()
    assert [region for region, _ in split_answers(body, "f", HOME)] == ["us-west-2", "us-east-1"]


@pytest.mark.parametrize(
    ("body", "where", "what"),
    [
        (b"", "f", "is empty"),
        (b"\xff\xfe", "f", "UTF-8"),
        (b'{"Fleets": [}', "f:1:13", "is not JSON"),
        (b'{"kind": "List", "items": []}', "f", "no answer"),
        (b"5", "f", "no answer"),
        (b'{"Fleets": [], "Region": 5}', "f", "Region"),
        (b'{"Fleets": [], "Region": "mars"}', "f", "Region"),
        (b'{"Fleets": [], "Region": ""}', "f", "Region"),
        (b'{"Fleets": [], "NextToken": "abc"}', "f", "was cut off"),
        (b'{"HistoryRecords": [], "FleetId": "f", "NextToken": "abc"}', "f", "was cut off"),
        (b'{"Reservations": []} {"Reservations": [], "NextToken": "abc"}', "f", "was cut off"),
        (b'[{"Fleets": [], "NextToken": "a"}, {"Reservations": []}]', "f", "was cut off"),
        (
            b'[{"ActiveInstances": [], "FleetId": "a", "NextToken": "x"}, {"ActiveInstances": []}]',
            "f",
            "was cut off",
        ),
        (
            b'[{"Fleets": [], "NextToken": "a"}, {"Fleets": [], "Region": "us-east-1"}]',
            "f",
            "was cut off",
        ),
        (b"[" * 200_000, "f", "nested too deeply"),
    ],
)
def test_file_that_is_no_answer_says_where_and_why(body: bytes, where: str, what: str) -> None:
    """A cluster's file given as `--aws` would make every fleet missing."""
    with pytest.raises(InputError) as caught:
        split_answers(body, "f", HOME)
    assert caught.value.where == where
    assert what in caught.value.what


@pytest.mark.parametrize(
    "body",
    [
        b'[{"Fleets": [], "NextToken": "abc"}, {"Fleets": [], "NextToken": null}]',
        b'{"Fleets": [], "NextToken": ""}',
        b'{"Activities": [], "NextToken": "abc"}',
    ],
    ids=["every page", "the last page", "activities"],
)
def test_answer_that_is_whole_is_taken(body: bytes) -> None:
    """Every page says that another follows but the last; activities come newest first."""
    assert split_answers(body, "f", HOME)


def test_half_a_surrogate_pair_does_not_reach_the_output() -> None:
    """One odd tag would make the whole plan unprintable."""
    body = b'{"Fleets": [{"FleetId": "f-\\ud800", "Tags": [{"Key": "\\ud83d\\ude00"}]}]}'
    ((_, answer),) = split_answers(body, "f", HOME)
    text = json.dumps(answer, ensure_ascii=False).encode()
    assert b"\xf0\x9f\x98\x80" in text
    state = decode_cloud([(HOME, answer)], cluster="analytics")
    assert state.ignored[0].name.encode()
