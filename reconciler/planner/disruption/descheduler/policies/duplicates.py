"""RemoveDuplicates: proposes replicas of one owner that could be spread over more nodes."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from operator import attrgetter

import numpy as np

from reconciler.model.cluster import Owner, Pod
from reconciler.planner.descheduler_settings import RemoveDuplicates
from reconciler.planner.disruption.descheduler.facts import (
    Facts,
    Proposal,
    Proposals,
    by_first_name,
    eviction_order,
)
from reconciler.planner.placement.arrays import BoolArray

_Group = tuple[str, Owner, int]
"""Namespace, owner and traits. The two ReplicaSets of a rollout are two groups."""


def proposals(arguments: RemoveDuplicates, facts: Facts) -> Proposals:
    """Yield the replicas above an even share on the nodes that could take them.

    Source: descheduler README, RemoveDuplicates, read 2026-11.
    """
    groups: dict[_Group, list[Pod]] = defaultdict(list)
    for replicas in facts.replicas:
        if arguments.scope.covers(replicas[0]):
            for pod_class, members in facts.classes(replicas):
                for owner, pods in _by_owner(members):
                    if owner.kind not in arguments.exclude_owner_kinds:
                        groups[replicas[0].key.namespace, owner, pod_class.number] += pods
    several = [pods for pods in groups.values() if _share_a_node(pods, facts)]
    for pods in sorted(several, key=by_first_name):
        yield from _uneven(pods, facts)


def _by_owner(pods: Sequence[Pod]) -> Iterable[tuple[Owner, Sequence[Pod]]]:
    """Return the pods by owner, without those that have none. Replicas usually share the object."""
    if len(set(map(id, map(attrgetter("owner"), pods)))) == 1:
        owner = pods[0].owner
        return () if owner is None else ((owner, pods),)
    found: dict[Owner, list[Pod]] = defaultdict(list)
    for pod in pods:
        if pod.owner is not None:
            found[pod.owner].append(pod)
    return found.items()


def _share_a_node(pods: Sequence[Pod], facts: Facts) -> bool:
    return len(set(facts.expected_on(pods))) < len(pods)


def _uneven(pods: Sequence[Pod], facts: Facts) -> Proposals:
    """Yield the pods of one group that are too many on their node."""
    possible = _possible(pods[0], facts)
    if possible.sum() < 2:
        return
    row_of = facts.view.row_of
    share = -(-len(pods) // int(possible.sum()))
    rows = [row_of[name] for name in facts.expected_on(pods) if name is not None]
    held = np.bincount(rows, minlength=len(possible))
    for pod in sorted(facts.staying(pods), key=eviction_order):
        node = pod.node_name
        if node is None or held[row_of[node]] <= share:
            continue
        count = held[row_of[node]]
        place = yield Proposal(
            pod=pod,
            policy="RemoveDuplicates",
            reason=f"{count} pods of its owner run on {node}, an even share is {share}",
            better=possible & (held < share),
            leaves=True,
            balances=True,
        )
        if place is not None:
            held[row_of[node]] -= 1
            held[row_of[place]] += 1


def _possible(pod: Pod, facts: Facts) -> BoolArray:
    """Return the rows of examined nodes that would take such a pod if they had room."""
    admitted = facts.sim.admitted(facts.class_of(pod))
    looked_at = {node.name for node in facts.nodes}
    known = np.array([name in looked_at for name in facts.view.nodes], dtype=np.bool_)
    return np.asarray(admitted[: len(known)] & known)
