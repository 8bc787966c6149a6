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
    found = with_limits(AdoptedFleet(sector="a", kind="cpu", entry={"size": "small"}), tags, target)
    assert found.entry == {"size": "small", **limits}
    assert len(found.notes) == len(said)
    for note, part in zip(found.notes, said, strict=True):
        assert part in note
