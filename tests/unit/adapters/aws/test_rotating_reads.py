"""Which of many objects are read in an observation, and what is known of the others."""

import threading
from collections.abc import Collection

from reconciler.adapters.aws.rotating_reads import AGAIN_MAX, RotatingReads
from reconciler.model.errors import Throttled, Unavailable
from reconciler.model.ids import Region
from reconciler.records.aws import Answer

HOME = Region("us-west-2")
NAMES = tuple(f"fleet-{number:02}" for number in range(25))


class Asked:
    """Answers about fleets with the number of the observation."""

    def __init__(self) -> None:
        self.turns = RotatingReads()
        self.observation = 0
        self.names: set[str] = set()
        """Who was asked about in the last observation."""
        self.failing: dict[str, type[Unavailable | Throttled]] = {}
        self._lock = threading.Lock()

    def observe(self, names: Collection[str] = NAMES) -> dict[str, int]:
        """Read once; return in which observation each known answer was given."""
        self.observation += 1
        self.names = set()
        found = self.turns.read(HOME, names, self._ask)
        return {name: answers[0]["FleetId"] for name, answers in found.items()}

    def _ask(self, name: str) -> list[Answer]:
        with self._lock:
            self.names.add(name)
        if name in self.failing:
            raise self.failing[name](name, "no")
        return [{"FleetId": self.observation}]


def test_new_ones_are_all_read_and_then_a_few_in_each_observation() -> None:
    """Of 60 fleets that are short of capacity each made every cycle a call longer."""
    asked = Asked()
    assert asked.observe() == dict.fromkeys(NAMES, 1)
    seen: set[str] = set()
    for _ in range(3):
        known = asked.observe()
        assert known.keys() == set(NAMES)
        assert len(asked.names) == AGAIN_MAX
        seen |= asked.names
    assert seen == set(NAMES), "one was never read again"


def test_one_that_is_asked_for_newly_goes_first() -> None:
    """A fleet that fails only now would be bought from until its turn."""
    asked = Asked()
    asked.observe(NAMES[:20])
    known = asked.observe((*NAMES[:20], "zebra"))
    assert known["zebra"] == 2
    assert len(asked.names) == AGAIN_MAX


def test_few_are_read_in_each_observation() -> None:
    """Nothing is saved by knowing less of them."""
    asked = Asked()
    asked.observe(NAMES[:AGAIN_MAX])
    assert asked.observe(NAMES[:AGAIN_MAX]) == dict.fromkeys(NAMES[:AGAIN_MAX], 2)


def test_one_that_is_not_asked_for_any_more_is_forgotten() -> None:
    """An hour later its old answer would count as new."""
    asked = Asked()
    asked.observe(("a", "b"))
    asked.observe(("b",))
    asked.failing["a"] = Throttled
    assert asked.observe(("a", "b")) == {"b": 3}


def test_nobody_else_is_asked_about_after_a_failure() -> None:
    """Each of the others would wait for as long, one after the other."""
    asked = Asked()
    asked.observe()
    asked.failing = dict.fromkeys(NAMES, Unavailable)
    known = asked.observe()
    assert len(asked.names) < AGAIN_MAX
    assert known == dict.fromkeys(set(NAMES) - asked.names, 1)
