"""Several answers of clouds as one: of each provider, or of each account, one."""

from collections.abc import Sequence

from reconciler.model.fleet import Instance
from reconciler.model.ids import Region
from reconciler.model.snapshot import CloudState


def merged_clouds(states: Sequence[CloudState]) -> CloudState | None:
    """Return one state that holds what all of these hold; None when there are none.

    A fleet or an instance that several of them show is kept once. A region that is silent in one
    state is silent in all, and nothing of it is shown: with half of its fleets missing it must not
    look as if they were gone. For the same reason instances are known only when every state knows
    them. Of the clocks the earliest is kept.
    """
    if len(states) <= 1:
        return states[0] if states else None
    silent = frozenset[Region]().union(*(each.silent for each in states))
    answered = frozenset[Region]().union(*(each.regions for each in states))
    times = [each.server_time for each in states if each.server_time is not None]
    fleets = {
        (f.region, f.provider, f.id): f
        for state in reversed(states)
        for f in state.fleets
        if f.region not in silent
    }
    return CloudState(
        fleets=tuple(sorted(fleets.values(), key=lambda each: (each.region, each.name, each.id))),
        instances=_merged_instances(states, silent),
        regions=answered - silent,
        silent=silent,
        ignored=tuple(sorted({each for state in states for each in state.ignored})),
        instances_known=all(each.instances_known for each in states),
        server_time=min(times, default=None),
    )


def _merged_instances(
    states: Sequence[CloudState], silent: frozenset[Region]
) -> tuple[Instance, ...]:
    """Each instance once; the entry that names its fleet is kept before one that does not."""
    found: dict[tuple[str, str], Instance] = {}
    for state in states:
        for each in state.instances:
            known = found.get((each.region, each.id))
            if each.region in silent:
                continue
            if known is None or (known.fleet_id is None and each.fleet_id is not None):
                found[each.region, each.id] = each
    return tuple(found[key] for key in sorted(found))
