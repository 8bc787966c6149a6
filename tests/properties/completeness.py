"""Whether pods that a plan gives up could have been served after all."""

from collections.abc import Iterator

from reconciler.model.cluster import Pod
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from reconciler.planner.settings import PlannerSettings
from tests.properties.checker import Replay
from tests.properties.kube_scheduler import KubeScheduler
from tests.properties.places import ZONE, FleetFacts, Place, imagined_place


def needlessly_unplaceable(snapshot: Snapshot, settings: PlannerSettings, made: Plan) -> list[str]:
    """Unplaceable pods without rules between pods that a place or an available fleet takes."""
    replay = Replay(snapshot, settings, made)
    list(replay.feasibility())
    scheduler = KubeScheduler(snapshot, [*replay.existing.values(), *replay.promised.values()])
    open_fleets = [f for f in replay.facts.values() if _available(f, snapshot, settings)]
    found: list[str] = []
    for key in sorted(u.pod for u in made.unplaceable):
        pod = replay.pods[key]
        places = [*scheduler.places, *_fresh(pod, open_fleets, snapshot, settings)]
        found += [f"{key} fits {p.name}" for p in places if _takes(scheduler, pod, p)]
    return found


def _takes(scheduler: KubeScheduler, pod: Pod, place: Place) -> bool:
    if scheduler.static_refusal(pod, place) or not scheduler.affinity_holds(pod, place):
        return False
    if isinstance(place.domain(ZONE), tuple) and scheduler.follows_into_a_zone(pod):
        return False  # it waits until the zone of the first is known (docs/scale-up.md)
    place.pods.append(pod)
    refusal = scheduler.overcommitted(pod, place)
    place.pods.remove(pod)
    return not refusal


def _available(facts: FleetFacts, snapshot: Snapshot, settings: PlannerSettings) -> bool:
    """At home, without any sign of trouble."""
    healthy = facts.live is None or not facts.live.launch_errors
    return healthy and not facts.missing and facts.region == settings.regions[0]


def _fresh(
    pod: Pod, fleets: list[FleetFacts], snapshot: Snapshot, settings: PlannerSettings
) -> Iterator[Place]:
    """A new node of each fleet that may serve the pod: its sector, and spot that may fail over."""
    named = pod.spec.node_selector.get("sector")
    by_fleet = {f.name: f.sector for f in settings.fleets()}
    sector = (
        named or by_fleet.get(pod.spec.node_selector.get("fleet", "")) or settings.default_sector
    )
    for facts in fleets:
        if facts.settings.sector == sector and facts.settings.spot:
            yield imagined_place(
                facts, f"fresh {facts.settings.name}", snapshot, settings, bought=True
            )
