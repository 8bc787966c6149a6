"""Which rule between pods refuses a pod's new nodes, for the reasons of `unplaceable`."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from reconciler.planner.placement.classes import PodClass
from reconciler.planner.placement.domains import SharedRules, shared_keys
from reconciler.planner.placement.filters import inter_pod_affinity, topology_spread
from reconciler.planner.placement.kinds import HOSTNAME, ZONE, ZONE_KEYS, region_of_open
from reconciler.planner.placement.label_keys import NOWHERE
from reconciler.planner.placement.links import Links
from reconciler.planner.placement.simulation import RowSpec, Simulation
from reconciler.planner.policies.scale_up.wording import missing_label


def refuses_everywhere(sim: Simulation, pod_class: PodClass) -> tuple[str, str] | None:
    """Return the rule between pods that refuses every node of every fleet, if one does."""
    links = sim.links(pod_class)
    if links.plain or not links.fits_nowhere:
        return None
    near = min((c.topology.key != NOWHERE for c in links.affinity), default=True)
    even = min((r.counter.topology.key != NOWHERE for r in links.spread), default=True)
    rules = _Rules(pod_class, links, sim.table.topology_keys)
    return _topology_code(rules, anti=1, affinity=near, spread=even, open_zone=False)


def refuses_new_node(
    sim: Simulation, pod_class: PodClass, row: RowSpec
) -> tuple[tuple[str, str] | None, bool]:
    """Return the rule between pods that refuses a new node, and whether it surely does.

    A rule that refuses every node is found earlier (`refuses_everywhere`). If none refuses a new
    node, it is the rule that must have limited how the pods were dealt.
    """
    links = sim.links(pod_class)
    if links.plain:
        return None, False
    mark = sim.fork()
    at = sim.add_row(row)
    room = np.ones(sim.rows, dtype=np.int64)
    anti = inter_pod_affinity.anti_affinity_room(links, room)[at]
    affinity = inter_pod_affinity.affinity_room(links, room)[at]
    spread = topology_spread.room(links, room, sim.kinds, sim.topologies, sim.version)[at]
    no_neighbour = bool(links.affinity) and not any(c.counts.any() for c in links.affinity)
    open_zone = not no_neighbour and any(
        sim.topologies[key].place_of(row.variants) < -1
        for key in ZONE_KEYS & set(sim.topologies)
        if any(c.topology.key == key for c in links.obeyed())
    )
    if open_zone and not _may_come_right(sim, pod_class, row):
        # Knowing the zone would not help: one of the rules that no zone satisfies together is
        # named.
        open_zone = False
        affinity = min(
            (int(c.over_choices(c.at_rows(), "most")[at]) for c in links.affinity), default=1
        )
    sim.revert(mark)
    # The variants of a node differ in the values of labels only.
    rules = _Rules(pod_class, links, {HOSTNAME}.union(*row.variants[:1]))
    code = _topology_code(rules, anti=anti, affinity=affinity, spread=spread, open_zone=open_zone)
    return code, bool(min(anti, affinity, spread) <= 0)


def _may_come_right(sim: Simulation, pod_class: PodClass, row: RowSpec) -> bool:
    """Return whether some zone in which a new node may start satisfies all rules."""
    if any(region_of_open(variant.get(ZONE, "")) for variant in row.variants):
        return True
    keys = shared_keys(sim.links(pod_class))
    place = tuple(sim.topologies[key].place_of(row.variants) for key in keys)
    return SharedRules(sim, pod_class, keys, None).some_zone_allowed(place)


@dataclass(frozen=True, slots=True)
class _Rules:
    """The rules between pods of a class, and the labels that new nodes have."""

    pod_class: PodClass
    links: Links
    labels: Collection[str]


def _topology_code(
    rules: _Rules, *, anti: int, affinity: int, spread: int, open_zone: bool
) -> tuple[str, str] | None:
    """Return the first rule that refuses, or the one that must have limited how pods were dealt."""
    links, spec = rules.links, rules.pod_class.spec
    apart = ("pod-anti-affinity", "a pod that it must not share a domain with is or may be there")
    keys = [term.topology_key for term in spec.pod_affinity]
    what = "no pod that it must be near runs where a new node would be"
    near = ("pod-affinity", missing_label(keys, rules.labels) or what)
    if links.follows_claim:
        near = ("volume-zone", "the volume of a claim that it shares will be in another pod's zone")
    keys = [constraint.topology_key for constraint in spec.topology_spread if constraint.hard]
    what = "one more pod in a new node's domain would exceed maxSkew"
    even = ("topology-spread", missing_label(keys, rules.labels) or what)
    zone = ("zone", "the zone of a new node is not known before it is there: give a fleet a `zone`")
    verdicts = (
        (anti <= 0, apart),
        (affinity <= 0, zone if open_zone else near),
        (spread <= 0, even),
        (open_zone, zone),
        (bool(links.spread), even),
        (bool(links.affinity), near),
    )
    return next((found for holds, found in verdicts if holds), apart)
