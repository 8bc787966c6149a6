"""Regions are read side by side: a slow one is left behind, and asked again when it has ended."""

import threading
from collections.abc import Iterator

import pytest

from reconciler.adapters.aws.regions import RegionReaders
from reconciler.model.errors import PortError, Throttled
from reconciler.model.ids import Region

WEST, EAST = Region("us-west-2"), Region("us-east-1")


class Sky:
    """Regions that answer, fail or hang as told."""

    def __init__(self) -> None:
        self.hang = threading.Event()
        self.hanging: set[Region] = set()
        self.failing: dict[Region, Exception] = {}
        self.asked: list[Region] = []
        self.said = "answer"

    def read(self, region: Region) -> str:
        self.asked.append(region)
        answer = f"{self.said} of {region}"
        if region in self.hanging:
            self.hang.wait(30)
        if region in self.failing:
            raise self.failing[region]
        return answer


@pytest.fixture
def sky() -> Iterator[Sky]:
    """Nothing hangs when the test is over."""
    made = Sky()
    yield made
    made.hang.set()


def said(found: list[tuple[Region, str | PortError]]) -> list[str]:
    """Answers, or classes of errors."""
    return [each if isinstance(each, str) else type(each).__name__ for _, each in found]


def test_each_region_says_its_own(sky: Sky) -> None:
    """A denied region would be taken for an empty one, or take the others with it."""
    sky.failing[EAST] = Throttled("us-east-1", "slow down")
    found = RegionReaders(sky.read).read([WEST, EAST, WEST])
    assert said(found) == ["answer of us-west-2", "Throttled"]


def test_region_that_hangs_holds_nobody_up(sky: Sky) -> None:
    """A black hole in one region would stop scaling in all of them for minutes."""
    sky.hanging.add(EAST)
    found = RegionReaders(sky.read, 0.05).read([EAST, WEST])
    assert said(found) == ["Unavailable", "answer of us-west-2"]


def test_region_that_still_hangs_is_not_asked_again(sky: Sky) -> None:
    """Every cycle would leave another thread behind."""
    sky.hanging.add(EAST)
    readers = RegionReaders(sky.read, 0.05)
    readers.read([EAST, WEST])
    assert said(readers.read([EAST, WEST])) == ["Unavailable", "answer of us-west-2"]
    assert sky.asked.count(EAST) == 1


def test_region_that_came_back_is_read_afresh(sky: Sky) -> None:
    """Its late answer is of long ago: fleets would be planned from the past."""
    sky.hanging.add(EAST)
    readers = RegionReaders(sky.read, 0.05)
    readers.read([EAST, WEST])
    sky.said = "newer answer"
    sky.hanging.clear()
    sky.hang.set()
    ended = threading.Event()
    while (found := said(readers.read([EAST, WEST])))[0] == "Unavailable":
        ended.wait(0.01)
    assert found == ["newer answer of us-east-1", "newer answer of us-west-2"]


def test_only_region_is_waited_for(sky: Sky) -> None:
    """With nobody else to serve, an answer late is better than none."""
    sky.hanging.add(WEST)
    threading.Timer(0.2, sky.hang.set).start()
    assert said(RegionReaders(sky.read, 0.01).read([WEST])) == ["answer of us-west-2"]


def test_bug_of_ours_is_not_taken_for_silence(sky: Sky) -> None:
    """It would show as an outage of AWS for weeks."""
    sky.failing[WEST] = RuntimeError("bug")
    with pytest.raises(RuntimeError, match="bug"):
        RegionReaders(sky.read).read([WEST])
