"""Up and down again without any change of demand: what an operator would call flapping."""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from reconciler.model.ids import FleetId
from tests.life.laws import Laws
from tests.life.stage import Stage

Targets = Mapping[FleetId, int]


def oscillation(stage: Stage, laws: Laws, since: float) -> Iterator[str]:
    """What went down and up again although demand did not change.

    Consolidation raises one fleet to lower another, and may find something better later. Even so
    no state of all targets comes back once it was left, but on the way to one that costs less
    than all before: costs that fall with every turn go round in no circle.

    Args:
        stage: What came to rest.
        laws: They know every change of a target.
        since: When demand, as far as it can be, was served; what replaces a broken machine is a
            change too.
    """
    recent = [change for change in laws.changes if change[0] >= since]
    if stage.process.settings.consolidation:
        yield from _vain_returns(stage, recent)
        return
    lowered: set[FleetId] = set()
    for at, fleet, before, after in recent:
        if after > before and fleet in lowered:
            yield f"{fleet} went down and up again ({before} to {after} at {at:.0f} s)"
        if after < before:
            lowered.add(fleet)


def _vain_returns(
    stage: Stage, changes: Sequence[tuple[float, FleetId, int, int]]
) -> Iterator[str]:
    states = _states(stage, changes)
    costs = [_usd_per_hour(stage, targets) for _, targets in states]
    rests = [
        number
        for number in range(len(states))
        if (number == 0 or costs[number] < costs[number - 1])
        and (number == len(states) - 1 or costs[number] < costs[number + 1])
    ]
    for number, (at, targets) in enumerate(states):
        if targets in [known for _, known in states[: max(0, number - 1)]]:
            before = [costs[rest] for rest in rests if rest < number]
            then = [costs[rest] for rest in rests if rest >= number]
            if not then or (before and min(before) <= then[0]):
                yield f"the targets {sorted(targets.values())} come back at {at:.0f} s, in vain"


def _states(
    stage: Stage, changes: Sequence[tuple[float, FleetId, int, int]]
) -> list[tuple[float, Targets]]:
    """All targets, each time that one of them became another, and at first."""
    targets = {fleet_id: record.target for fleet_id, record in stage.world.fleets.records.items()}
    targets |= {fleet: before for _, fleet, before, _ in reversed(changes)}
    found: list[tuple[float, Targets]] = [(0.0, dict(targets))]
    for at, fleet, _, after in changes:
        if targets[fleet] != after:
            targets[fleet] = after
            found.append((at, dict(targets)))
    return found


def _usd_per_hour(stage: Stage, targets: Targets) -> Decimal:
    """What the config's fleets cost; the others' targets are never changed."""
    free = Decimal(0)
    prices = {fleet.name: fleet.usd_per_hour or free for fleet in stage.process.settings.fleets()}
    owned = stage.fleets.items()
    return sum((prices.get(name, free) * targets[each] for (name, _), each in owned), free)
