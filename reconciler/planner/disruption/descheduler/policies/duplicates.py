"""RemoveDuplicates: proposes replicas of one owner that could be spread over more nodes."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter

import numpy as np

from reconciler.model.cluster import Owner, Pod, PodSpec
from reconciler.planner.descheduler_settings import RemoveDuplicates
from reconciler.planner.disruption.descheduler.facts import (
    Facts,
    Proposal,
    Proposals,
    by_first_name,
    eviction_order,
)
from reconciler.planner.placement.arrays import BoolArray
from reconciler.planner.placement.classes import PodClass

_Group = tuple[str, Owner, PodSpec]
"""Namespace, owner and spec. The two ReplicaSets of a rollout are two groups."""
_Members = list[tuple[PodClass, Sequence[Pod]]]
"""Pods of one group by class: replicas differ by claims, and by labels that a selector reads."""


def proposals(arguments: RemoveDuplicates, facts: Facts) -> Proposals:
    """Yield the replicas above an even share on the nodes that could take them.

    Source: descheduler README, RemoveDuplicates, read 2026-11.
    """
    groups: dict[_Group, _Members] = defaultdict(list)
    for replicas in facts.replicas:
        first = replicas[0]
        if arguments.scope.covers(first):
            for pod_class, members in facts.classes(replicas):
                for owner, pods in _by_owner(members):
                    if owner.kind not in arguments.exclude_owner_kinds:
                        key = first.key.namespace, owner, first.spec
                        groups[key].append((pod_class, pods))
    looked_at = {node.name for node in facts.nodes}
    known = np.array([name in looked_at for name in facts.view.nodes], dtype=np.bool_)
    several = [
        (together, by_class)
        for by_class in groups.values()
        if _share_a_node(together := [pod for _, each in by_class for pod in each], facts)
    ]
    for together, by_class in sorted(several, key=lambda each: by_first_name(each[0])):
        of_static = {pod_class.static: pod_class for pod_class, _ in by_class}
        possible = {
            static: facts.sim.admitted(pod_class)[: len(known)] & known
            for static, pod_class in of_static.items()
        }
        yield from _uneven(together, possible, facts)


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


def _uneven(pods: Sequence[Pod], possible: Mapping[int, BoolArray], facts: Facts) -> Proposals:
    """Yield the pods of one group that are too many on their node.

    Args:
        pods: The pods.
        possible: The rows that would take a pod if they had room, by what its class asks of nodes.
        facts: The cluster.
    """
    together = np.logical_or.reduce(list(possible.values()))
    if together.sum() < 2:
        return
    row_of = facts.view.row_of
    share = -(-len(pods) // int(together.sum()))
    rows = [row_of[name] for name in facts.expected_on(pods) if name is not None]
    held = np.bincount(rows, minlength=len(together))
    for pod in sorted(facts.staying(pods), key=eviction_order):
        node = pod.node_name
        if node is None or held[row_of[node]] <= share:
            continue
        count = held[row_of[node]]
        takes = together if len(possible) == 1 else possible[facts.class_of(pod).static]
        place = yield Proposal(
            pod=pod,
            policy="RemoveDuplicates",
            reason=f"{count} pods of its owner run on {node}, an even share is {share}",
            better=takes & (held < share),
            leaves=True,
            balances=True,
        )
        if place is not None:
            held[row_of[node]] -= 1
            held[row_of[place]] += 1
