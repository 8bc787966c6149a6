"""How far an adopted fleet may shrink: its target is kept where nothing states a limit."""

import pytest

from reconciler.gitops.adoption.adopted_fleet import AdoptedFleet
from reconciler.gitops.adoption.limits import with_limits


@pytest.mark.parametrize(
    ("tags", "target", "limits", "said"),
    [
        ({}, 3, {"min_capacity": 3}, ["present target 3", "no max_capacity"]),
        (
            {"min_capacity": "2", "max_capacity": "10"},
            3,
            {"min_capacity": 2, "max_capacity": 10},
            [],
        ),
        ({"capacity_min": "0"}, 3, {"min_capacity": 0}, ["no max_capacity"]),
        ({"max_capacity": "2"}, 5, {"min_capacity": 2, "max_capacity": 2}, ["present target 2"]),
        (
            {"min_capacity": "many", "capacity_max": "-5"},
            1,
            {"min_capacity": 1},
            [
                "its tag min_capacity is 'many', which is no whole number from 0, so its present",
                "its tag capacity_max is '-5', which is no whole number from 0: it has no max_cap",
            ],
        ),
    ],
)
def test_limits_are_kept_and_guesses_said(
    tags: dict[str, str], target: int, limits: dict[str, int], said: list[str]
) -> None:
    """A fleet that came back without its minimum could be emptied by the next cycle."""
    found = with_limits(
        AdoptedFleet(sector="a", kind="cpu", entry={"size": "small"}), tags, target, {}
    )
    assert found.entry == {"size": "small", **limits}
    assert len(found.notes) == len(said)
    for note, part in zip(found.notes, said, strict=True):
        assert part in note


@pytest.mark.parametrize(
    ("written", "limits", "said"),
    [
        ({"capacity_min": "1", "max_capacity": "4"}, {}, []),
        ({"min_capacity": "1"}, {"max_capacity": 6}, []),
        ({"max_capacity": "3"}, {"min_capacity": 3}, ["its tag min_capacity is 5, above max_cap"]),
        ({"min_capacity": "7"}, {}, ["its tag max_capacity is 6, below min_capacity 7"]),
        (
            {"min_capacity": "1", "initial_node_count": "9"},
            {},
            ["its tag max_capacity is 6, below initial_node_count 9"],
        ),
    ],
)
def test_limits_of_a_written_entry_come_before_tags(
    written: dict[str, str], limits: dict[str, int], said: list[str]
) -> None:
    """A tag that contradicts the config must not end the import of all others."""
    tags = {"min_capacity": "5", "max_capacity": "6"}
    fleet = AdoptedFleet(sector="a", kind="cpu", entry={"size": "small"})
    found = with_limits(fleet, tags, 8, written)
    assert found.entry == {"size": "small", **limits}
    assert len(found.notes) == len(said)
    for note, part in zip(found.notes, said, strict=True):
        assert part in note
