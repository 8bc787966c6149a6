"""Replays a plan pod by pod and says everything that is wrong with it.

Independent of the planner: `places` says what is there and what comes, `kube_scheduler` whether a
pod may go somewhere. What a plan promises must hold in at least one order of binding.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator

from reconciler.model.actions import (
    DRAINING_TAINT,
    SetCapacity,
    TerminateInstance,
    UntaintNode,
    begins_drain,
)
from reconciler.model.cluster import Pod
from reconciler.model.ids import NodeName, PodKey
from reconciler.model.plan import Placement, Plan
from reconciler.model.snapshot import Snapshot
from reconciler.planner.settings import PlannerSettings
from tests.properties.kube_scheduler import KubeScheduler
from tests.properties.places import (
    ZONE,
    FleetFacts,
    Place,
    existing_places,
    fleet_facts,
    imagined_place,
)


def faults_of(snapshot: Snapshot, settings: PlannerSettings, plan: Plan) -> list[str]:
    """Every way in which the plan breaks the contract; none when it is sound."""
    replay = Replay(snapshot, settings, plan)
    return [*replay.bookkeeping(), *replay.capacities(), *replay.feasibility(), *replay.money()]


class Replay:
    """One plan with its places, real and promised."""

    def __init__(self, snapshot: Snapshot, settings: PlannerSettings, plan: Plan) -> None:
        self.snapshot, self.settings, self.plan = snapshot, settings, plan
        self.pods = {p.key: p for p in snapshot.cluster.pods}
        self.facts = {f.key: f for f in fleet_facts(snapshot, settings)}
        self.existing = existing_places(snapshot)
        for action in plan.actions:
            if not isinstance(action, UntaintNode) or action.policy != "scale-up":
                continue
            place = self.existing[action.node]
            place.taints = tuple(t for t in place.taints if t.key != DRAINING_TAINT)
        for begun in (a for a in plan.actions if begins_drain(a)):
            self.existing[begun.node].taints += (begun.taint,)
        for moved in (p for p in plan.placements if p.moved_from is not None):
            source = self.existing[NodeName(str(moved.moved_from))]
            source.pods = [pod for pod in source.pods if pod.key != moved.pod]
        self.promised: dict[tuple[str, str, str, int], Place] = {}
        self.place_of: dict[PodKey, Place] = {}

    # ---- who is where ---------------------------------------------------------------------

    def bookkeeping(self) -> Iterator[str]:
        """Each waiting pod exactly once; nothing else is placed."""
        told = Counter(p.pod for p in self.plan.placements if p.moved_from is None)
        told.update(u.pod for u in self.plan.unplaceable)
        by_name = {(p.key.namespace, p.key.name): p.key for p in self.pods.values()}
        ignored = Counter(
            by_name[i.namespace, i.pod]
            for i in self.plan.ignored
            if (i.namespace, i.pod) in by_name
        )
        for key, pod in self.pods.items():
            waits = pod.node_name is None and pod.phase == "Pending" and not pod.unreadable
            count = told[key] + ignored[key]
            outside = self.settings.pod_namespace not in {None, key.namespace}
            if waits and count != 1 and not (outside and count == 0):
                yield f"{key} is told {count} times"
            if not waits and told[key]:
                yield f"{key} does not wait, but is placed or unplaceable"
        yield from (f"{key} is not in the snapshot" for key in told if key not in self.pods)

    def capacities(self) -> Iterator[str]:
        """Targets within limits; what is asked for is what is used."""
        for listed in self.plan.fleets:
            facts = self.facts.get((listed.fleet, listed.region))
            if facts is None:
                yield f"{listed.fleet} in {listed.region} is not of the config"
                continue
            if (listed.current, listed.joined) != (facts.current, facts.joined):
                yield f"{listed.fleet}: current and joined are {facts.current}, {facts.joined}"
            yield from self._capacity_of(facts, listed.target)

    def _capacity_of(self, facts: FleetFacts, target: int) -> Iterator[str]:
        name = facts.settings.name
        ending = self._ending(facts)
        asked = [
            a.to_capacity
            for a in self.plan.actions
            if isinstance(a, SetCapacity) and (a.fleet, a.region) == facts.key
        ]
        if len(asked) > 1 or (asked or [facts.current])[0] != target + ending:
            yield f"{name}: asked {asked}, target {target}, ending {ending}"
        served = min(facts.current, max(facts.joined, facts.launched))
        if facts.max is not None and target > max(facts.max, served):
            yield f"{name}: target {target} above max_capacity {facts.max}"
        if target < min(facts.min, facts.current):
            yield f"{name}: target {target} below min_capacity {facts.min}"
        used = self._used_new_nodes(facts)
        bought = max(0, target + ending - facts.held) if asked else 0
        if used and max(used) >= bought:
            yield f"{name}: pods on new node {max(used)}, but only {bought} are bought"
        there = sum(n.ready for n in facts.nodes) - facts.held  # beyond the target, and in use
        if bought > max(len(used), self._below_min(facts), there):
            yield f"{name}: {bought} nodes bought, {len(used)} used"

    def _ending(self, facts: FleetFacts) -> int:
        return sum(
            isinstance(a, TerminateInstance) and a.decrement and (a.fleet, a.region) == facts.key
            for a in self.plan.actions
        )

    def _used_new_nodes(self, facts: FleetFacts) -> set[int]:
        return {
            p.new_node
            for p in self.plan.placements
            if p.new_node is not None and (p.fleet, p.region) == facts.key
        }

    @staticmethod
    def _below_min(facts: FleetFacts) -> int:
        return max(0, facts.min - (facts.current - facts.draining))

    def place(self, placement: Placement) -> Place | str:
        """Where a placement goes, or why it cannot."""
        if placement.node is not None:
            found = self.existing.get(placement.node)
            return found if found is not None else f"{placement.node} does not exist"
        if placement.fleet is None or placement.region is None:
            return "placed nowhere"
        facts = self.facts.get((placement.fleet, placement.region))
        if facts is None or facts.missing:
            return f"{placement.fleet} is no fleet that EC2 has"
        launching = placement.launching is not None
        number = placement.launching if launching else placement.new_node
        if number is None or number < 0:
            return "placed nowhere"
        if launching and number >= max(0, facts.current - facts.joined):
            return f"{placement.fleet} is not launching a node {number}"
        key = (placement.fleet, placement.region, "launching" if launching else "new", number)
        if key not in self.promised:
            bought = not launching and number >= self._below_min(facts)
            self.promised[key] = imagined_place(
                facts, "/".join(map(str, key)), self.snapshot, self.settings, bought=bought
            )
        return self.promised[key]

    # ---- whether it holds -----------------------------------------------------------------

    def feasibility(self) -> Iterator[str]:
        """Every placement passes every filter."""
        for placement in self.plan.placements:
            if placement.pod not in self.pods:
                continue
            found = self.place(placement)
            if isinstance(found, str):
                yield f"{placement.pod}: {found}"
            else:
                self.place_of[placement.pod] = found
        scheduler = KubeScheduler(self.snapshot, [*self.existing.values(), *self.promised.values()])
        for key, place in self.place_of.items():
            place.pods.append(self.pods[key])
        for key, place in self.place_of.items():
            pod = self.pods[key]
            if pod.nominated_node_name == place.name:
                continue
            refusal = (
                scheduler.static_refusal(pod, place)
                or scheduler.overcommitted(pod, place)
                or _kept_apart(scheduler, pod, place)
            )
            if refusal:
                yield f"{key} on {place.name}: {refusal}"
        yield from self._in_some_order(scheduler)

    def _in_some_order(self, scheduler: KubeScheduler) -> Iterator[str]:
        """Affinity and spread hold at the moment of binding, in one order at least."""
        orders: tuple[Callable[[Pod, int], tuple[int, ...]], ...] = (
            lambda pod, load: (load, _rules(pod)),
            lambda pod, load: (-_rules(pod), load),
            lambda pod, load: (_rules(pod), load),
            lambda pod, load: (-pod.spec.priority, load),
        )
        stuck: list[PodKey] = []
        for order in orders:
            early: set[PodKey] = set()
            while stuck := self._bind_all(scheduler, order, early):
                if early.issuperset(stuck):
                    break
                early.update(stuck)
            else:
                return
        yield from (
            f"{key} on {self.place_of[key].name}: affinity or spread never holds"
            for key in stuck
            if not _is_a_try(scheduler, self.pods[key], self.place_of[key])
        )

    def _bind_all(
        self,
        scheduler: KubeScheduler,
        order: Callable[[Pod, int], tuple[int, ...]],
        early: Collection[PodKey],
    ) -> list[PodKey]:
        """Bind pods one by one in this order, those of `early` before the others.

        Returns those that no order of the remaining ones lets bind any more.
        """
        waiting = dict(self.place_of)
        for key, place in waiting.items():
            place.pods.remove(self.pods[key])
        bound: list[PodKey] = []
        while waiting:
            ready = []
            for key, place in waiting.items():
                pod = self.pods[key]
                load = scheduler.spread_load(pod, place)
                if pod.nominated_node_name == place.name:
                    load = 0
                elif load is None or not scheduler.affinity_holds(pod, place):
                    continue
                ready.append((key not in early, order(pod, load), key))
            if not ready:
                break
            key = min(ready)[-1]
            place = waiting.pop(key)
            place.pods.append(self.pods[key])
            bound.append(key)
        for key, place in waiting.items():
            place.pods.append(self.pods[key])
        return list(waiting)

    # ---- what it costs --------------------------------------------------------------------

    def money(self) -> Iterator[str]:
        """The cost is that of the targets, the bound is below it, the limit is kept."""
        cost = self.plan.cost
        if any(f.usd_per_hour is None for f in self.settings.fleets()):
            return
        prices = {f.name: float(f.usd_per_hour or 0) for f in self.settings.fleets()}
        after = sum(f.target * prices[f.fleet] for f in self.plan.fleets)
        before = sum(f.current * prices[f.fleet] for f in self.plan.fleets)
        if abs(after - cost.hourly_usd_after) > 1e-6 * max(1, after):
            yield f"targets cost {after}, the plan says {cost.hourly_usd_after}"
        if abs(before - cost.hourly_usd_before) > 1e-6 * max(1, before):
            yield f"targets cost {before} before, the plan says {cost.hourly_usd_before}"
        if cost.hourly_usd_lower_bound > cost.hourly_usd_after + 1e-9:
            yield f"lower bound {cost.hourly_usd_lower_bound} above {cost.hourly_usd_after}"
        if not 0 <= cost.gap <= 1:
            yield f"gap {cost.gap}"
        limit = self.settings.usd_per_hour_max
        minima = sum(max(f.current, f.joined, f.min) * prices[f.fleet] for f in self.plan.fleets)
        if limit is not None and after > max(float(limit), minima) + 1e-9:
            yield f"{after} USD per hour is above max_hourly_usd {limit}"


def _kept_apart(scheduler: KubeScheduler, pod: Pod, place: Place) -> str:
    """Why anti-affinity keeps the pod off the place, in whatever zone a new node comes up.

    Such a node is bought one at a time if it may come up in a zone that suits (docs/scale-up.md).
    """
    refusal = scheduler.anti_affinity_refusal(pod, place)
    zones = place.domain(ZONE)
    if not (refusal and place.imagined and isinstance(zones, tuple)):
        return refusal
    every = place.variants
    for zone in zones:
        place.variants = tuple(labels for labels in every if labels.get(ZONE) == zone)
        if not scheduler.anti_affinity_refusal(pod, place):
            refusal = ""
    place.variants = every
    return refusal


def _is_a_try(scheduler: KubeScheduler, pod: Pod, place: Place) -> bool:
    """Whether a new node may come up in the zone that the rest of the pod's group is in, or not.

    Such a node is bought one at a time for pods that must be near, or spread from, their own kind,
    or share a claim whose volume is yet to be made (docs/scale-up.md).
    """
    if not (place.imagined and isinstance(place.domain(ZONE), tuple)):
        return False
    spread = any(
        topology_spread_constraint.hard and topology_spread_constraint.topology_key == ZONE
        for topology_spread_constraint in pod.spec.topology_spread
    )
    near = any(
        pod_affinity_term.topology_key == ZONE for pod_affinity_term in pod.spec.pod_affinity
    )
    near = near and scheduler.means_itself(pod)
    return spread or near or scheduler.shares_new_volume(pod)


def _rules(pod: Pod) -> int:
    """How much a pod's place depends on others."""
    return len(pod.spec.pod_affinity) + len(pod.spec.topology_spread)
