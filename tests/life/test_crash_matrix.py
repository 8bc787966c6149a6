"""Every scenario with a kill before and after every external call: always the same end."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.life.scenarios import SCENARIOS, Scenario, Scene


@dataclass(frozen=True)
class Run:
    """What one run came to."""

    calls: list[str]
    end: dict[str, object]
    evictions: int
    ended: bool
    broken: list[str]


def run(scenario: Scenario, number: int = 0, *, after: bool = False) -> Run:
    """Play a scenario; with a number, kill the program at that call."""
    scene: Scene = scenario.begin()
    log = scene.world.log
    first = log.made
    if number:
        log.crash_at(first + number, after=after)
    ended = scene.run(scenario.seconds)
    lost = [f"the Job's pod {key} is lost" for key in scene.lost_jobs()]
    return Run(
        calls=[f"{call.operation} {call.subject}" for call in log.calls],
        end=scene.end(),
        evictions=len(scene.laws.evictions),
        ended=ended,
        broken=[*scene.laws.broken, *lost],
    )


def faults(whole: Run, killed: Run) -> Iterator[str]:
    """In what a run with a crash differs from the run without one, or breaks a law."""
    yield from killed.broken
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
def test_killed_at_any_call_the_next_process_comes_to_the_same_end(
    scenario: Scenario, closing_lines: list[str]
) -> None:
    """A node would be lost track of, a pod killed twice, an instance paid for for ever."""
    whole = run(scenario)
    assert whole.broken == []
    assert whole.ended
    assert whole.end["disorder"] == []
    assert (whole.evictions > 0) == scenario.evicts
    found: dict[str, list[str]] = {}
    for number, call in enumerate(whole.calls, start=1):
        for after in (False, True):
            where = f"killed {'after' if after else 'before'} call {number}, {call}"
            wrong = list(faults(whole, run(scenario, number, after=after)))
            if wrong:
                found[where] = wrong
    closing_lines.append(f"crash matrix: {scenario.name}: {2 * len(whole.calls)} crash points")
    assert found == {}
