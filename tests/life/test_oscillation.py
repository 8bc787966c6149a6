"""The law on going up and down, on changes that are made up."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.life.happenings import Happenings
from tests.life.laws import Laws
from tests.life.oscillation import oscillation
from tests.life.programs import Config
from tests.life.stage import Stage

CALM = Config(consolidation=True, unhurried=True)


def broken(config: Config, changes: Sequence[tuple[str, int, int]]) -> list[str]:
    """What the law says of these changes of targets: size, from, to."""
    stage = Stage(config)
    laws = Laws(stage, Happenings(stage))
    ids = {name: fleet_id for (name, _), fleet_id in stage.fleets.items()}
    for at, (size, before, after) in enumerate(changes, 1):
        laws.changes.append((float(at), ids[f"primary-{size}"], before, after))
        stage.world.fleets.records[ids[f"primary-{size}"]].target = after
    return list(oscillation(stage, laws, 0.0))


REPLACED = [("small", 0, 1), ("large", 1, 0)]


@pytest.mark.parametrize(
    ("changes", "breaks"),
    [
        (REPLACED, False),
        ([("small", 1, 0), ("small", 0, 1)], True),
        ([*REPLACED, ("large", 0, 1), ("small", 1, 0)], True),
        ([("small", 1, 0), *REPLACED], False),
        ([("small", 1, 0), *REPLACED, ("large", 0, 1), ("large", 1, 0)], True),
    ],
    ids=["replaced", "missed", "and-back", "ended-then-replaced", "ended-replaced-and-back"],
)
def test_what_comes_back_has_to_pay(
    changes: list[tuple[str, int, int]],
    breaks: bool,
) -> None:
    """A law that sees no circle, or takes a saving for one, proves nothing."""
    assert bool(broken(CALM, changes)) is breaks


def test_without_consolidation_nothing_comes_back() -> None:
    """Only what replaces something more expensive may be bought again."""
    config = replace(CALM, consolidation=False)
    assert broken(config, [("small", 1, 0), *REPLACED])
    assert not broken(config, [("small", 1, 0), ("large", 1, 0)])
