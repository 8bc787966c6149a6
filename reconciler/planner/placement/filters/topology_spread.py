"""PodTopologySpread: hard constraints only (DoNotSchedule).

Source: kube-scheduler plugins/podtopologyspread/filtering.go: a pod fits a domain when the
domain's matching pods, plus itself if it matches, exceed the least filled eligible domain by no
more than maxSkew; with fewer than minDomains domains that least is 0.
"""

import numpy as np

from reconciler.planner.placement.arrays import UNLIMITED, IntArray
from reconciler.planner.placement.links import Links, SpreadRule
from reconciler.planner.placement.topology import Topology, uncertain_rows


def room(
    links: Links,
    room: IntArray,
    kinds: IntArray,
    topologies: dict[str, Topology],
    version: int,
) -> IntArray:
    """Return `room` limited by every hard spread constraint of the class."""
    for rule in links.spread:
        refresh_domains(rule, kinds, topologies, version)
        room = np.minimum(room, rule_room(rule))
    return room


def rule_room(rule: SpreadRule) -> IntArray:
    """Return how many more pods each row may take before its domain exceeds the skew."""
    counted = rule.counter.at_rows()
    topology = rule.counter.topology
    limit = least_filled(rule) + rule.max_skew
    if rule.counts_itself:
        allowed = np.maximum(limit - counted, 0)
    else:
        allowed = np.where(counted <= limit, UNLIMITED, 0)
    uncertain = uncertain_rows(topology)
    if uncertain.any():
        worst = rule.counter.over_choices(np.zeros_like(counted), "most")
        itself = 1 if rule.counts_itself else 0
        open_room = np.where(worst + itself <= limit, UNLIMITED, 0)
        if len(rule.present) < rule.min_domains and rule.counts_itself:
            open_room = np.minimum(open_room, _room_in_choices(rule))
        allowed = np.where(uncertain, open_room, allowed)
    return np.where(topology.domain >= 0, allowed, 0)


def _room_in_choices(rule: SpreadRule) -> IntArray:
    """Return for each uncertain row how many pods all domains that it may become take together.

    With fewer domains than `minDomains` each takes `maxSkew` pods, and pods on other rows with the
    same choices take some of these places. If there may be enough domains there is no such limit.
    """
    topology, counts = rule.counter.topology, rule.counter.counts
    choice_of, present = topology.choice_of_domains(), set(rule.present.tolist())
    left = np.array(
        [
            UNLIMITED
            if len(present.union(choices)) >= rule.min_domains
            else np.maximum(rule.max_skew - counts[list(choices)], 0).sum()
            - counts[choice_of == number].sum()
            for number, choices in enumerate(topology.choices)
        ],
        dtype=np.int64,
    )
    of_rows = np.append(choice_of, -1)[topology.domain]
    return np.asarray(np.maximum(np.append(left, 0)[of_rows], 0))


def excess(rule: SpreadRule, rows: IntArray) -> IntArray:
    """Return by how many pods the domain of each of these rows exceeds the skew.

    It does not if the number is 0 or less. The rule's domains have to be up to date.
    """
    return np.asarray(rule.counter.at_rows()[rows] - rule.max_skew - least_filled(rule))


def least_filled(rule: SpreadRule) -> int:
    """Return the number of matching pods in the least filled existing domain."""
    if len(rule.present) < rule.min_domains or not len(rule.present):
        return 0
    return int(rule.counter.counts[rule.present].min())


def refresh_domains(
    rule: SpreadRule, kinds: IntArray, topologies: dict[str, Topology], version: int
) -> None:
    """Find the domains that count, again after rows were added, removed or changed."""
    if rule.present_version == version:
        return
    eligible = rule.eligible_kinds()[kinds]
    for key in rule.keys:
        eligible &= topologies[key].domain >= 0
    topology = rule.counter.topology
    eligible &= ~uncertain_rows(topology)
    present = np.zeros(len(topology.values), dtype=np.bool_)
    present[topology.domain[eligible]] = True
    rule.present = present.nonzero()[0]
    rule.present_version = version
