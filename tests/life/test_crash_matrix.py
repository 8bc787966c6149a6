"""Every scenario with a kill before and after its external calls: always the same end.

A usual run kills at one of five of these points, which are spread over the scenario; a nightly one
(`make nightly`) at all of them.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from reconciler.adapters.memory import Call
from tests.life.branches import Branches
from tests.life.scenarios import SCENARIOS, Scenario
from tests.life.scene import Scene


@dataclass(frozen=True)
class Run:
    """What one run came to."""

    calls: int
    end: dict[str, object]
    evictions: int
    crashes: int
    ended: bool
    broken: list[str]


def run(scenario: Scenario, one_of: int) -> tuple[Run, dict[str, Run]]:
    """Play a scenario; also with the program killed before and after its calls.

    A killed run is a copy of this process, which goes on from the call.

    Args:
        scenario: What happens.
        one_of: At which of the points it is killed: 1 for all, 5 for every fifth.
    """
    scene: Scene = scenario.begin()
    log = scene.world.log
    first = log.made
    branches: Branches[Run] = Branches()
    killed: dict[str, Run] = {}
    points = itertools.count()

    def dies(call: Call, *, after: bool) -> bool:
        if branches.is_copy or next(points) % one_of:
            return False
        ended = branches.branch()
        if ended is None:
            return True
        where = f"killed {'after' if after else 'before'} call {log.made - first}"
        killed[f"{where}, {call.operation} {call.subject}"] = ended
        return False

    def played() -> Run:
        ended = scene.run(scenario.seconds)
        lost = [f"the Job's pod {key} is lost" for key in scene.lost_jobs()]
        return Run(
            calls=log.made - first,
            end=scene.end(),
            evictions=len(scene.laws.evictions),
            crashes=scene.stage.process.crashes,
            ended=ended,
            broken=[*scene.laws.broken, *lost],
        )

    log.dies = dies
    return branches.play(played), killed


def faults(whole: Run, killed: Run) -> Iterator[str]:
    """In what a run with a crash differs from the run without one, or breaks a law."""
    yield from killed.broken
    if not killed.crashes:
        yield "the program was not killed"
    if not killed.ended:
        yield "it does not come to rest"
    if killed.end != whole.end:
        yield f"it ends with {killed.end}"
    if killed.evictions > whole.evictions:
        yield f"{killed.evictions} pods were evicted instead of {whole.evictions}"


def test_interrupted_node_is_bought_for_once_and_gives_its_part_of_the_target_back() -> None:
    """EC2 would launch a node beside the one that was bought in its place."""
    scene = next(s for s in SCENARIOS if s.name.endswith("with notice")).begin()
    assert scene.run(60)
    assert [(before, after) for _, _, before, after in scene.laws.changes] == [(2, 3), (3, 2)]
    assert len(scene.laws.endings) == 1


@pytest.mark.timeout(600)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.name.replace(" ", "-"))
@pytest.mark.parametrize("one_of", [5, pytest.param(1, marks=pytest.mark.nightly)])
def test_killed_at_any_call_the_next_process_comes_to_the_same_end(
    scenario: Scenario, one_of: int, closing_lines: list[str]
) -> None:
    """A node would be lost track of, a pod killed twice, an instance paid for for ever."""
    whole, killed = run(scenario, one_of)
    assert whole.broken == []
    assert whole.ended
    assert whole.end["disorder"] == []
    assert (whole.evictions > 0) == scenario.evicts
    found = {where: wrong for where, each in killed.items() if (wrong := [*faults(whole, each)])}
    # Before each call, and after each that took effect.
    assert whole.calls // one_of < len(killed) <= 2 * whole.calls // one_of + 1
    closing_lines.append(f"crash matrix: {scenario.name}: {len(killed)} crash points")
    assert found == {}
