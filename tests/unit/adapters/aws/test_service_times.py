"""How old members of groups seem to be whose warm pool keeps instances running."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from tests.unit.adapters.aws.groups_account import HOME, NOW, Watched

ACTIVITIES = "describe_scaling_activities"
GROUP = "group-000"


class Pool(Watched):
    """A group whose warm pool keeps instances running, launched five hours ago."""

    def __init__(self) -> None:
        super().__init__()
        self.account.members = {GROUP: []}
        self.account.desired = {GROUP: 0}
        self.account.pool_state = "Running"
        self.account.launched_at = NOW - timedelta(hours=5)

    def take(self, *instances: str, group: str = GROUP, minutes_ago: float = 1) -> None:
        """Have instances leave the pool, which launches others into it."""
        self.account.members[group] += instances
        self.account.desired[group] = len(self.account.members[group])
        for instance in instances:
            self.note(f"from warm pool: {instance}", group, minutes_ago)
            self.note(f"into warm pool: i-{len(self.account.activities):08x}", group, minutes_ago)

    def note(self, words: str, group: str, minutes_ago: float) -> None:
        """Add an activity."""
        at = NOW + timedelta(seconds=self.seconds) - timedelta(minutes=minutes_ago)
        activity: dict[str, Any] = {
            "AutoScalingGroupName": group,
            "StatusCode": "InProgress",
            "StartTime": at,
            "Description": f"Launching a new EC2 instance {words}",
        }
        self.account.activities.insert(0, activity)

    def minutes_old(self) -> dict[str, float | None]:
        """The minutes since each member seems to have been launched, read now."""
        now = NOW + timedelta(seconds=self.seconds)
        return {
            instance.id: None
            if instance.launched_at is None
            else (now - instance.launched_at).seconds / 60
            for instance in self.cloud.observe([HOME]).instances
        }


@pytest.fixture
def pool() -> Iterator[Pool]:
    """A pool of which no instance is taken yet."""
    made = Pool()
    yield made
    made.cloud.close()


@pytest.mark.parametrize("fault", ["throttled", "down", "denied"])
def test_instance_from_a_pool_is_never_older_than_the_first_observation_without_an_answer(
    pool: Pool, fault: str
) -> None:
    """One throttled call, and instances that boot were ended as never joined."""
    unanswered: set[str] = getattr(pool.account, fault)
    unanswered.add(ACTIVITIES)
    pool.take("i-1", "i-2")
    assert pool.minutes_old() == {"i-1": 0, "i-2": 0}
    pool.seconds = 600
    assert pool.minutes_old() == {"i-1": 10, "i-2": 10}, "one that never joins has to get old"


@pytest.mark.parametrize("fault", ["throttled", "down"])
def test_instance_from_a_pool_is_as_old_as_its_activity_as_soon_as_that_is_known(
    pool: Pool, fault: str
) -> None:
    """A question that was throttled once would never be asked again."""
    unanswered: set[str] = getattr(pool.account, fault)
    unanswered.add(ACTIVITIES)
    pool.take("i-1")
    assert pool.minutes_old() == {"i-1": 0}
    unanswered.clear()
    assert pool.minutes_old() == {"i-1": 1}


@pytest.mark.parametrize("taken", [1, 30, 150])
def test_many_instances_from_a_pool_are_each_as_old_as_their_activity(
    pool: Pool, taken: int
) -> None:
    """Each is two activities, as the pool refills itself: a page had 25 of them, or none."""
    names = [f"i-{n:05x}" for n in range(taken)]
    pool.take(*names)
    assert pool.minutes_old() == dict.fromkeys(names, 1)


def test_what_was_read_before_a_page_is_throttled_is_kept(pool: Pool) -> None:
    """While much is going on no reading would ever come to its end, and nothing be known."""
    pool.take("i-1", minutes_ago=9)
    for n in range(100):
        pool.note(f"into warm pool: i-{n:05x}", GROUP, 2)
    pool.take("i-2")
    pool.account.pages_max = 1
    assert pool.minutes_old() == {"i-1": 0, "i-2": 1}
    pool.account.pages_max = 5
    assert pool.minutes_old() == {"i-1": 9, "i-2": 1}


def test_instances_whose_activities_are_too_far_back_are_as_old_as_the_first_observation(
    pool: Pool,
) -> None:
    """Pages are limited, and Auto Scaling forgets activities after six weeks."""
    pool.take("i-1")
    for n in range(600):
        pool.note(f"into warm pool: i-{n:05x}", GROUP, 0)
    assert pool.minutes_old() == {"i-1": 0}
    pool.account.calls.clear()
    pool.seconds = 600
    assert pool.minutes_old() == {"i-1": 10}
    assert not pool.account.calls[ACTIVITIES], "there is nothing to be learnt"


def test_age_does_not_jump_when_activities_are_no_longer_returned(pool: Pool) -> None:
    """An hour after it left the pool, the node seemed to be five hours older, and was replaced."""
    pool.take("i-1")
    assert pool.minutes_old() == {"i-1": 1}
    pool.account.activities.clear()
    pool.account.calls.clear()
    pool.seconds = 7200
    assert pool.minutes_old() == {"i-1": 121}
    assert not pool.account.calls[ACTIVITIES], "asked although it is known"


def test_age_after_a_restart_is_what_activities_of_long_ago_tell(pool: Pool) -> None:
    """The reader knows nothing then, and the node's age must be the same."""
    pool.take("i-1", minutes_ago=200)
    assert pool.minutes_old() == {"i-1": 200}


def test_age_is_kept_when_the_pool_is_removed(pool: Pool) -> None:
    """Nothing tells of the pool any more, and the instance may still boot."""
    pool.take("i-1")
    assert pool.minutes_old() == {"i-1": 1}
    pool.account.pool_state = ""
    pool.seconds = 130
    assert pool.minutes_old()["i-1"] == pytest.approx(1 + 130 / 60)


def test_instance_that_returned_to_the_pool_is_new_when_it_leaves_again(pool: Pool) -> None:
    """Scale-in may put an instance back into the pool: its first time in service is long over."""
    pool.take("i-1", minutes_ago=200)
    assert pool.minutes_old() == {"i-1": 200}
    pool.account.members[GROUP].clear()
    pool.seconds = 130
    assert pool.minutes_old() == {}
    pool.seconds = 260
    pool.take("i-1")
    assert pool.minutes_old() == {"i-1": 1}


def test_groups_with_pools_are_asked_about_a_few_at_a_time(pool: Pool) -> None:
    """After a restart dozens of calls would hold up the first cycle, and be throttled."""
    names = [f"group-{n:03}" for n in range(25)]
    pool.account.members = {name: [] for name in names}
    pool.account.pools = set(names)
    for name in names:
        pool.take(f"i-{name[-3:]}", group=name)
    ages = [sorted(pool.minutes_old().values(), key=float).count(1) for _ in range(4)]  # type: ignore[arg-type]
    assert ages == [10, 20, 25, 25]
    assert pool.account.calls[ACTIVITIES] == 25
