"""Merges the answers of several clouds (one per provider or account) into one."""

from collections.abc import Sequence

from reconciler.model.fleet import Instance, Provider
from reconciler.model.ids import FleetId, Region
from reconciler.model.snapshot import CloudState


def merged_clouds(states: Sequence[CloudState]) -> CloudState | None:
    """Return one state with everything that these hold; None when there are none.

    A fleet or an instance in several states is kept once. A region that is silent in one state is
    silent in the result: otherwise its missing fleets would look as if they were gone. Kept of it
    are only the fleets of providers that answered, and their members. For the same reason instances
    are known only when every state with fleets knows them. The earliest of the clocks is kept.
    """
    if len(states) <= 1:
        return states[0] if states else None
    silent = frozenset[Region]().union(*(cloud_state.silent for cloud_state in states))
    answered = frozenset[Region]().union(*(cloud_state.regions for cloud_state in states))
    in_part = _answered_in_part(states, silent)
    times = [
        cloud_state.server_time for cloud_state in states if cloud_state.server_time is not None
    ]
    fleets = {
        (f.region, f.provider, f.id): f
        for state in reversed(states)
        for f in state.fleets
        if f.region not in silent or (f.provider, f.region) in in_part
    }
    return CloudState(
        fleets=tuple(sorted(fleets.values(), key=lambda each: (each.region, each.name, each.id))),
        other_fleets=frozenset(fleet for state in states for fleet in state.other_fleets),
        instances=_merged_instances(states, silent, frozenset((r, id_) for r, _, id_ in fleets)),
        regions=answered - silent,
        silent=silent,
        answered_in_part=in_part,
        providers=frozenset(provider for state in states for provider in state.providers),
        ignored=tuple(sorted({each for state in states for each in state.ignored})),
        instances_known=all(e.instances_known for e in states if e.fleets or e.instances_known)
        and any(cloud_state.instances_known for cloud_state in states),
        instances_asked=any(cloud_state.instances_asked for cloud_state in states),
        server_time=min(times, default=None),
    )


def _answered_in_part(
    states: Sequence[CloudState], silent: frozenset[Region]
) -> frozenset[tuple[Provider, Region]]:
    """Return the providers that answered in regions that are silent for another one."""
    answered = {(p, r) for state in states for p in state.providers for r in state.regions & silent}
    failed = {(p, r) for state in states for p in state.providers for r in state.silent}
    return frozenset(answered - failed)


def _merged_instances(
    states: Sequence[CloudState],
    silent: frozenset[Region],
    fleets: frozenset[tuple[Region, FleetId]],
) -> tuple[Instance, ...]:
    """Return each instance once, as in the state that shows its fleet, which knows the members.

    What another state says about a member is left out. An entry that names a fleet is kept before
    one that does not. In a silent region only members of the fleets that are kept are: any other
    one may be a member of a fleet that is not shown.
    """
    shown = [{(f.region, f.id) for f in state.fleets} for state in states]
    known_by_one = set[tuple[str, str]]().union(*shown)
    instances: dict[tuple[str, str], Instance] = {}
    for state, own in zip(states, shown, strict=True):
        for instance in state.instances:
            place = (instance.region, instance.fleet_id or "")
            if instance.region in silent and place not in fleets:
                continue
            if place in known_by_one and place not in own:
                continue
            known = instances.get((instance.region, instance.id))
            if known is None or (known.fleet_id is None and instance.fleet_id is not None):
                instances[instance.region, instance.id] = instance
    return tuple(instances[key] for key in sorted(instances))
