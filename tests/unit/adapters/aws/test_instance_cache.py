"""Which instances are asked for again, and when the last answer stands."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from reconciler.adapters.aws.instance_cache import FRESH_SECONDS, OLD_SECONDS, CachedInstances
from reconciler.model.ids import Region

HOME = Region("us-west-2")
LONG_SECONDS = 250.0
"""What no test waits for, however slow the machine."""


def fleet(fulfilled: float, target: int | None = None, **more: Any) -> dict[str, Any]:
    """One fleet as DescribeFleets answers it; without a target it has what it wants."""
    return {
        "FleetId": "fleet-1",
        "FleetState": "active",
        "FulfilledCapacity": fulfilled,
        "TargetCapacitySpecification": {
            "TotalTargetCapacity": fulfilled if target is None else target
        },
        **more,
    }


class Ec2:
    """Answers from what there is, and remembers the questions."""

    def __init__(self, **states: str) -> None:
        self.states = states
        self.first = set(states)
        """What ran before the tests began."""
        self.asked: list[str] = []
        self.ages_seconds: list[float] = []
        self.fleet_ids: list[list[str]] = []
        self.answered = threading.Event()
        self.complete = threading.Event()

    def all_instances(
        self, between_pages: Callable[[], object] = lambda: None
    ) -> list[dict[str, Any]]:
        """Everything, on two pages."""
        self.asked.append("all")
        self.answered.set()
        between_pages()
        self.complete.set()
        return self._answer(self.states)

    def newer_instances(
        self, age_seconds: float, fleet_ids: Sequence[str], ids: Sequence[str]
    ) -> list[dict[str, Any]]:
        """What these fleets launched since, and these."""
        self.asked.append("newer")
        self.ages_seconds.append(age_seconds)
        self.fleet_ids.append(list(fleet_ids))
        launched = set(self.states) - self.first if "fleet-1" in fleet_ids else set()
        return self._answer(launched | set(ids))

    def _answer(self, names: Any) -> list[dict[str, Any]]:
        tags = [{"Key": "aws:ec2:fleet-id", "Value": "fleet-1"}]
        return [
            {
                "Instances": [
                    {"InstanceId": n, "State": {"Name": self.states[n]}, "Tags": tags}
                    for n in sorted(names)
                ]
            }
        ]


def states(reservations: list[dict[str, Any]]) -> dict[str, str]:
    """State by instance."""
    return {i["InstanceId"]: i["State"]["Name"] for r in reservations for i in r["Instances"]}


class Time:
    """A clock that stands still until it is set."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Time:
    """The clock."""
    return Time()


@pytest.fixture
def ec2() -> Ec2:
    """A fleet with two running instances."""
    return Ec2(a="running", b="running")


@pytest.fixture
def known(clock: Time, ec2: Ec2) -> CachedInstances:
    """They were read once."""
    made = CachedInstances(clock)
    made.read(HOME, [fleet(2)], ec2)
    return made


def test_nothing_is_asked_while_fleets_say_the_same(known: CachedInstances, ec2: Ec2) -> None:
    """Otherwise each pod that comes costs a second of waiting for EC2 in a large cluster."""
    assert states(known.read(HOME, [fleet(2)], ec2)) == ec2.states
    assert ec2.asked == ["all"]


def test_other_region_is_asked_for_itself(known: CachedInstances, ec2: Ec2) -> None:
    """One region's instances are not another's."""
    known.read(Region("us-east-1"), [fleet(2)], ec2)
    assert ec2.asked == ["all", "all"]


def test_launch_is_followed_by_asking_for_what_moves(known: CachedInstances, ec2: Ec2) -> None:
    """A launched instance that is not seen would be bought again."""
    ec2.states["c"] = "pending"
    assert states(known.read(HOME, [fleet(3)], ec2)) == ec2.states
    ec2.states["c"] = "running"
    assert states(known.read(HOME, [fleet(3)], ec2)) == ec2.states
    known.read(HOME, [fleet(3)], ec2)
    assert ec2.asked == ["all", "newer", "newer"]


def test_launches_of_fleets_that_say_the_same_are_not_asked_for(
    known: CachedInstances, ec2: Ec2
) -> None:
    """In a burst every plan would read all that was launched in the last minutes once more."""
    quiet = [fleet(2), fleet(0, FleetId="fleet-2")]
    known.read(HOME, quiet, ec2)
    ec2.states["c"] = "pending"
    known.read(HOME, [fleet(3), quiet[1]], ec2)
    known.read(HOME, [fleet(3), quiet[1]], ec2)
    known.read(HOME, [fleet(3), fleet(0, target=1, FleetId="fleet-2")], ec2)
    assert ec2.fleet_ids == [["fleet-2"], ["fleet-1"], [], ["fleet-2"]]


def test_launches_are_asked_for_since_they_were_last_asked_for(
    known: CachedInstances, ec2: Ec2, clock: Time
) -> None:
    """After a thousand launches each pod that comes would have all of them read once more."""
    for name, ran_seconds in (("c", 20.0), ("d", 5.0)):
        clock.now += ran_seconds
        ec2.states[name] = "running"
        known.read(HOME, [fleet(len(ec2.states))], ec2)
    assert ec2.ages_seconds == [20.0, 5.0]


def test_launches_count_since_the_last_answer_that_added_up(
    known: CachedInstances, ec2: Ec2, clock: Time
) -> None:
    """An answer that was thrown away proves nothing."""
    clock.now += 20.0
    ec2.states |= {"c": "running", "d": "running"}
    ec2.first |= {"c"}  # EC2 counts it before it shows it
    known.read(HOME, [fleet(4)], ec2)
    assert ec2.asked == ["all", "newer", "all"]
    clock.now += 5.0
    known.read(HOME, [fleet(5)], ec2)
    assert ec2.ages_seconds == [20.0, 5.0]


def test_launch_that_the_fleet_does_not_count_yet_is_no_contradiction(
    known: CachedInstances, ec2: Ec2
) -> None:
    """Right after each raise all instances would be asked for, when speed matters most."""
    ec2.states["c"] = "pending"
    assert states(known.read(HOME, [fleet(2, target=3)], ec2)) == ec2.states
    assert ec2.asked == ["all", "newer"]


def test_fleet_that_waits_is_looked_at_each_time(known: CachedInstances, ec2: Ec2) -> None:
    """The next launch must be seen at once."""
    known.read(HOME, [fleet(2, target=3)], ec2)
    known.read(HOME, [fleet(2, target=3)], ec2)
    assert ec2.asked == ["all", "newer", "newer"]


def test_what_went_unseen_is_found_by_counting(known: CachedInstances, ec2: Ec2) -> None:
    """An instance that ended between two looks moves no more when it is asked for."""
    ec2.states["b"] = "terminated"
    assert states(known.read(HOME, [fleet(1)], ec2)) == ec2.states
    assert ec2.asked == ["all", "newer", "all"]


def test_instance_that_was_launched_and_runs_by_now_is_asked_for_alone(
    known: CachedInstances, ec2: Ec2
) -> None:
    """After every scale-up all instances would be asked for, when the next pod may come."""
    ec2.states["c"] = "running"
    assert states(known.read(HOME, [fleet(3)], ec2)) == ec2.states
    assert ec2.asked == ["all", "newer"]


def test_ended_instances_are_asked_for_alone(known: CachedInstances, ec2: Ec2) -> None:
    """Unseen, they would be planned with; and a thousand others need not be read for one end."""
    known.ended(HOME, ["a"])
    ec2.states["a"] = "shutting-down"
    assert states(known.read(HOME, [fleet(2)], ec2)) == ec2.states
    ec2.states["a"] = "terminated"
    assert states(known.read(HOME, [fleet(1)], ec2)) == ec2.states
    known.read(HOME, [fleet(1)], ec2)
    assert ec2.asked == ["all", "newer", "newer"]


def test_instance_with_a_notice_is_asked_for_until_its_end_shows(
    known: CachedInstances, ec2: Ec2
) -> None:
    """While its fleet says the same its node was taken to run for up to a minute."""
    assert known.expect_end({"a", "foreign"})
    assert states(known.read(HOME, [fleet(2)], ec2)) == ec2.states
    ec2.states["a"] = "stopping"
    assert states(known.read(HOME, [fleet(2)], ec2)) == ec2.states
    assert ec2.asked == ["all", "newer", "newer"]


def test_notice_for_an_instance_of_others_asks_for_nothing(
    known: CachedInstances, ec2: Ec2
) -> None:
    """The queue has the state changes of every instance of the account."""
    assert not known.expect_end({"foreign"})
    known.read(HOME, [fleet(2)], ec2)
    assert ec2.asked == ["all"]


def test_ended_instances_are_asked_for_until_ec2_knows(known: CachedInstances, ec2: Ec2) -> None:
    """EC2's lists are eventually consistent: a dead machine would count as a node for a minute."""
    known.ended(HOME, ["a"])
    for _ in range(2):
        assert states(known.read(HOME, [fleet(2)], ec2))["a"] == "running"
    ec2.states["a"] = "terminated"
    assert states(known.read(HOME, [fleet(1)], ec2)) == ec2.states


def test_instance_that_ec2_refused_to_end_is_not_asked_for_for_ever(
    known: CachedInstances, ec2: Ec2, clock: Time
) -> None:
    """Every cycle would ask for it."""
    known.ended(HOME, ["a"])
    clock.now += OLD_SECONDS + 1
    for _ in range(2):
        known.read(HOME, [fleet(2)], ec2)
    assert ec2.asked == ["all", "all"]


def test_answer_from_before_an_end_is_not_believed(clock: Time, ec2: Ec2) -> None:
    """An ended instance that looks alive would be taken back for the pods that come."""
    known = CachedInstances(clock)

    class Slow(Ec2):
        """Instances are ended while it answers."""

        def all_instances(
            self, between_pages: Callable[[], object] = lambda: None
        ) -> list[dict[str, Any]]:
            answer = super().all_instances(between_pages)
            if self.asked == ["all"]:
                self.states["a"] = "shutting-down"
                known.ended(HOME, ["a"])
            return answer

    slow = Slow(a="running", b="running")
    known.read(HOME, [fleet(2)], slow)
    assert states(known.read(HOME, [fleet(2)], slow))["a"] == "shutting-down"


def test_late_answer_does_not_replace_a_newer_one(clock: Time) -> None:
    """A slow EC2 would show what was there a minute ago."""
    known = CachedInstances(clock)
    late, go_on = Ec2(a="running"), threading.Event()

    class Background(Ec2):
        """Answers when it may."""

        def all_instances(
            self, between_pages: Callable[[], object] = lambda: None
        ) -> list[dict[str, Any]]:
            answer = super().all_instances(between_pages)
            go_on.wait(LONG_SECONDS)
            return answer

    known.read(HOME, [fleet(1)], late)
    clock.now += FRESH_SECONDS + 1
    slow = Background(a="running")
    known.read(HOME, [fleet(1)], slow)
    assert slow.answered.wait(LONG_SECONDS)
    clock.now += FRESH_SECONDS
    known.read(HOME, [fleet(1)], Ec2(b="running"))
    go_on.set()
    known.close()
    assert states(known.read(HOME, [fleet(1)], Ec2(b="running"))) == {"b": "running"}


def test_older_answer_stands_while_a_new_one_is_fetched(
    known: CachedInstances, ec2: Ec2, clock: Time
) -> None:
    """Pods must not wait for the refreshing of what the fleets say has not changed."""
    clock.now += FRESH_SECONDS + 1
    ec2.answered.clear()
    before = states(known.read(HOME, [fleet(2)], ec2))
    assert ec2.answered.wait(LONG_SECONDS)
    known.close()
    assert before == {"a": "running", "b": "running"}
    ec2.states["b"] = "stopped"
    known.read(HOME, [fleet(2)], ec2)
    assert ec2.asked == ["all", "all"]


def test_pages_are_read_slowly_beside_cycles_only(clock: Time) -> None:
    """A pod that comes meanwhile would wait for a thousand instances; a stop for the pauses."""
    known = CachedInstances(clock, page_pause_seconds=LONG_SECONDS)
    first, second = Ec2(a="running"), Ec2(a="running")
    known.read(HOME, [fleet(1)], first)
    clock.now += FRESH_SECONDS + 1
    known.read(HOME, [fleet(1)], second)
    assert second.answered.wait(LONG_SECONDS)
    paused = not second.complete.is_set()
    known.close()
    assert paused
    assert first.complete.is_set()
    assert second.complete.is_set()


def test_old_answer_is_not_used(known: CachedInstances, ec2: Ec2, clock: Time) -> None:
    """What no fleet tells of, a tag say, must be noticed at some time."""
    clock.now += OLD_SECONDS + 1
    ec2.states["b"] = "stopped"
    assert states(known.read(HOME, [fleet(2)], ec2)) == ec2.states


def test_full_answer_that_is_behind_after_an_end_is_not_believed(clock: Time, ec2: Ec2) -> None:
    """A dead machine would count as a node for a minute, and pods be promised to it."""
    known = CachedInstances(clock)
    known.ended(HOME, ["b"])
    known.read(HOME, [fleet(1)], ec2)
    ec2.states["b"] = "terminated"
    clock.now += 1.0
    assert states(known.read(HOME, [fleet(1)], ec2)) == ec2.states
    assert ec2.asked == ["all", "newer"]
