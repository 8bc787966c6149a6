"""RemoveDuplicates: replicas of one owner on fewer nodes than they could be on."""

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np

from reconciler.model.cluster import Owner, Pod
from reconciler.model.ids import NodeName
from reconciler.planner.descheduler_settings import RemoveDuplicates
from reconciler.planner.disruption.descheduler.facts import (
    Facts,
    Proposal,
    Proposals,
    eviction_order,
)
from reconciler.planner.placement.arrays import BoolArray

_Group = tuple[str, Owner, int]
"""Namespace, owner and what the pods are made of: a rollout's two kinds of pods are two groups."""


def proposals(arguments: RemoveDuplicates, facts: Facts) -> Proposals:
    """Yield the replicas beyond an even share of the nodes that could take them.

    Source: descheduler README, RemoveDuplicates, read 2026-11.
    """
    groups: dict[_Group, list[Pod]] = defaultdict(list)
    for _, pod in facts.pods:
        owner = pod.owner
        excluded = owner is None or owner.kind in arguments.exclude_owner_kinds
        if owner is not None and not excluded and arguments.scope.covers(pod):
            groups[pod.key.namespace, owner, facts.view.table.of(pod, bound=True).number].append(
                pod
            )
    for pods in sorted(groups.values(), key=lambda pods: min(pod.key for pod in pods)):
        yield from _uneven(pods, facts)


def _uneven(pods: Sequence[Pod], facts: Facts) -> Proposals:
    """Yield the pods of one group that are too many on their node."""
    view = facts.view
    held = Counter(pod.node_name for pod in pods if pod.node_name is not None)
    if max(held.values()) < 2:
        return
    possible = _possible(pods[0], facts)
    if possible.sum() < 2:
        return
    share = -(-len(pods) // int(possible.sum()))
    names = list(view.nodes)
    for pod in sorted(pods, key=eviction_order):
        node = pod.node_name
        if node is None or held[node] <= share:
            continue
        below = np.array([held[name] < share for name in names], dtype=np.bool_)
        place = yield Proposal(
            pod=pod,
            policy="RemoveDuplicates",
            reason=f"{held[node]} pods of its owner run on {node}, an even share is {share}",
            better=possible & below,
            leaves=True,
            balances=True,
        )
        _move(held, node, place)


def _move(held: Counter[NodeName], node: NodeName, place: NodeName | None) -> None:
    """Count a pod at the place where it is expected; None: it stays."""
    if place is not None:
        held[node] -= 1
        held[place] += 1


def _possible(pod: Pod, facts: Facts) -> BoolArray:
    """Rows of looked-at nodes that would take such a pod if they had room."""
    admitted = facts.sim.admitted(facts.view.table.of(pod, bound=True))
    looked_at = {node.name for node in facts.nodes}
    known = np.array([name in looked_at for name in facts.view.nodes], dtype=np.bool_)
    return np.asarray(admitted[: len(known)] & known)
