"""What is known of launch templates while EC2 does not know one, or does not answer."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

import pytest

from reconciler.adapters.aws.launch_template_cache import (
    AT_ONCE,
    COUNTS_SECONDS,
    CachedTemplates,
    Template,
)
from reconciler.model.errors import Forbidden, NotFound, PortError, Throttled, Unavailable
from reconciler.model.ids import Region
from reconciler.records.aws import ANSWERED_AT, UNKNOWN_TEMPLATES

WEST = Region("us-west-2")
ID = "LaunchTemplateId"


def at(seconds: float) -> datetime:
    """The wall clock."""
    return datetime(2026, 1, 31, 12, tzinfo=UTC) + timedelta(seconds=seconds)


class Ec2:
    """Templates by id; it refuses a question about any other one, as EC2 does."""

    def __init__(self, *ids: str) -> None:
        self.versions = dict.fromkeys(ids, 8)
        self.error: PortError | None = None
        self.calls: list[list[str]] = []
        self.seconds = 0.0
        self.known = CachedTemplates(lambda: at(self.seconds), lambda: self.seconds)
        self.unknown: list[Mapping[str, str]] = []

    def ask(self, by: str, names: Sequence[str]) -> list[Mapping[str, object]]:
        """DescribeLaunchTemplates."""
        self.calls.append(list(names))
        if self.error is not None:
            raise self.error
        if not self.versions.keys() >= set(names):
            raise NotFound("describe_launch_templates", "InvalidLaunchTemplateId.NotFound: no")
        return [{by: name, "LatestVersionNumber": self.versions[name]} for name in names]

    def read(self, *ids: str, after: float = 0.0, fresh_seconds: float = 0.0) -> dict[str, int]:
        """The versions that are known after so many more seconds."""
        self.seconds += after
        wanted: list[Template] = [(ID, each) for each in ids]
        (answer,) = self.known.read(WEST, wanted, self.ask, fresh_seconds)
        self.unknown = list(answer.get(UNKNOWN_TEMPLATES, ()))
        return {
            launch_template[ID]: launch_template["LatestVersionNumber"]
            for launch_template in answer["LaunchTemplates"]
        }


@pytest.mark.parametrize(
    "error", [Throttled("x", "slow"), Unavailable("x", "down"), Forbidden("x", "no")]
)
def test_last_version_counts_while_ec2_does_not_answer(error: PortError) -> None:
    """One failed call let halted rolling updates go on."""
    ec2 = Ec2("lt-1", "lt-2")
    assert ec2.read("lt-1", "lt-2") == {"lt-1": 8, "lt-2": 8}
    ec2.error = error
    assert ec2.read("lt-1", "lt-2", after=10) == {"lt-1": 8, "lt-2": 8}
    (missing,) = ec2.unknown
    assert missing["Name"] == "lt-1"
    assert "nor of 1 other" in missing["Why"]
    ec2.error, ec2.versions["lt-1"] = None, 9
    assert ec2.read("lt-1", "lt-2", after=60) == {"lt-1": 9, "lt-2": 8}
    assert ec2.unknown == []


def test_last_version_does_not_count_for_ever() -> None:
    """Nodes of a version that nobody heard of would be replaced by those of the last known one."""
    ec2 = Ec2("lt-1")
    ec2.read("lt-1")
    ec2.error = Forbidden("x", "no")
    assert ec2.read("lt-1", after=COUNTS_SECONDS) == {"lt-1": 8}
    assert ec2.read("lt-1", after=1) == {}


def test_template_that_is_gone_hides_no_other_one() -> None:
    """One deleted template hid the versions of all fleets of its region."""
    ids = [f"lt-{number:03}" for number in range(AT_ONCE)]
    ec2 = Ec2(*ids[:77], *ids[78:])
    assert ec2.read(*ids) == dict.fromkeys(ec2.versions, 8)
    assert ec2.unknown == [{"Name": ids[77], "Why": "EC2 does not know it"}]
    assert len(ec2.calls) <= 17, "two of each half"
    ec2.calls.clear()
    assert len(ec2.read(*ids, after=10)) == AT_ONCE - 1
    assert [len(call) for call in ec2.calls] == [AT_ONCE - 1]
    assert ec2.unknown, "it is still reported"
    ec2.versions[ids[77]] = 3
    assert ec2.read(*ids, after=60)[ids[77]] == 3


def test_template_that_was_deleted_is_known_no_more() -> None:
    """A template of that name which is made again begins with version 1."""
    ec2 = Ec2("lt-1")
    ec2.read("lt-1")
    ec2.versions.clear()
    assert ec2.read("lt-1", after=10) == {}


def test_nothing_is_asked_for_a_while_after_a_failure() -> None:
    """A throttled account would be asked in every cycle, and twice a cycle by name and by id."""
    ec2 = Ec2("lt-1")
    ec2.error = Throttled("x", "slow")
    wanted = [(ID, "lt-1"), ("LaunchTemplateName", "web")]
    for seconds in (0, 1, 2, 5):
        ec2.seconds = seconds
        ec2.known.read(WEST, wanted, ec2.ask)
    assert ec2.calls == [["lt-1"], ["lt-1"]]


def test_answers_are_asked_for_again_together_when_one_is_not_fresh() -> None:
    """A call a minute for each of hundreds of groups, as each was made at another time."""
    ec2 = Ec2("lt-1", "lt-2")
    for ids, after in [(["lt-1"], 0), (["lt-1", "lt-2"], 20), (["lt-1", "lt-2"], 50)]:
        ec2.read(*ids, after=after, fresh_seconds=60)
    assert ec2.calls == [["lt-1"], ["lt-1", "lt-2"]]
    ec2.read("lt-1", "lt-2", after=20, fresh_seconds=60)
    assert ec2.calls[2:] == [["lt-1", "lt-2"]]


def test_regions_have_templates_of_their_own() -> None:
    """A template's name means another one in each region."""
    ec2 = Ec2("lt-1")
    ec2.read("lt-1")
    ec2.error = Unavailable("x", "down")
    (answer,) = ec2.known.read(Region("eu-west-1"), [(ID, "lt-1")], ec2.ask)
    assert answer["LaunchTemplates"] == []
    assert ec2.read("lt-1") == {"lt-1": 8}


def test_answer_says_when_ec2_gave_it() -> None:
    """A number of before an apply counted for ten minutes, and its new nodes were rolled back."""
    ec2 = Ec2("lt-1")
    ec2.read("lt-1", after=30)
    ec2.error = Throttled("x", "slow")
    ec2.seconds = 90
    (answer,) = ec2.known.read(WEST, [(ID, "lt-1")], ec2.ask)
    assert [launch_template[ANSWERED_AT] for launch_template in answer["LaunchTemplates"]] == [
        at(30)
    ]
