"""Headroom in a sector config."""

import pytest

from reconciler.config.check import check_reading
from reconciler.config.loader import read_config
from tests.unit.config.documents import with_fleets

SECTOR = with_fleets("{size: small}")


def told(item: str, sectors: str = SECTOR) -> list[tuple[str, str]]:
    """Code and path of every fault of a config with this item."""
    found = check_reading(read_config(f"headroom: [{item}]\n" + sectors))
    return [(problem.code, problem.path) for problem in found]


@pytest.mark.parametrize(
    "item", ["cpu: 4", "memory: 1Gi", "cpu: 1, memory: 1Gi", "nodes: 2", "percent: 10"]
)
def test_each_way_to_say_how_much_is_accepted(item: str) -> None:
    """The page promises them."""
    assert told(f"{{sector: primary, {item}}}") == []


@pytest.mark.parametrize(
    "item", ["", ", cpu: 4, nodes: 1", ", nodes: 1, percent: 10", ", memory: 1Gi, percent: 5"]
)
def test_nothing_or_several_ways_are_refused(item: str) -> None:
    """Nobody could say which of them holds."""
    assert told(f"{{sector: primary{item}}}") == [("config/range", "headroom[0]")]


def test_sector_that_is_not_there_is_refused() -> None:
    """A misspelt name would keep no room, silently."""
    assert told("{sector: primray, nodes: 1}") == [("config/range", "headroom[0].sector")]


@pytest.mark.parametrize("sector", ["", "sector: , "])
def test_config_without_sectors_keeps_room_in_its_groups(sector: str) -> None:
    """Room could not be kept without a sector for everything."""
    assert told(f"{{{sector}nodes: 5}}", sectors="") == []


def test_sector_is_stated_where_there_are_some_and_only_there() -> None:
    """Nobody could say in which of them the room is."""
    assert told("{nodes: 5}") == [("config/type", "headroom[0].sector")]
    assert told("{sector: primary, nodes: 5}", sectors="") == [
        ("config/range", "headroom[0].sector")
    ]
