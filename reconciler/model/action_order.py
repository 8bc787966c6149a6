"""The order in which actions are executed, for the plan that lists them and for the executor.

Purchases come first: pods wait for them. Then actions that protect pods (taints, draining nodes
that are given back), then evictions, terminations and Node objects. Last are notes: annotations of
nodes on which nothing else is done; the next plan could write them as well.
"""

from collections import defaultdict
from collections.abc import Iterable
from enum import IntEnum

from reconciler.model.actions import (
    AnnotateNode,
    AnyAction,
    DeleteNode,
    DeletePod,
    EvictPod,
    SetCapacity,
    TaintNode,
    TerminateInstance,
    UntaintNode,
)


class Stage(IntEnum):
    """The stages in which a plan is executed: one ends before the next one begins.

    Within a stage, actions on different subjects are independent. So are the evictions and
    deletions of a node's pods, which have a stage of their own.
    """

    PURCHASE = 0
    PROTECT = 1
    EVICT = 2
    TERMINATE = 3
    DELETE_NODE = 4
    NOTE = 5


def subject_of(action: AnyAction) -> str:
    """Return what an action acts on: later actions on the same subject depend on it.

    Within their stage, evictions and deletions of pods depend on each other only for one pod.
    """
    if isinstance(action, SetCapacity):
        return f"fleet {action.region}/{action.fleet}"
    if isinstance(action, TerminateInstance) and action.node is None:
        return f"instance {action.instance}"
    return f"node {action.node}"


def staged(actions: Iterable[AnyAction]) -> list[tuple[Stage, AnyAction]]:
    """Return the actions in the order of their stages; those of one subject keep the given order.

    An annotation belongs to the action before it on its node, else to the one after it: the start
    of a drain is noted before pods are evicted, its failure before the taint is removed. What comes
    before or after the pods that leave a node has a stage of its own.
    """
    listed = list(actions)
    chains: defaultdict[str, list[int]] = defaultdict(list)
    for index, action in enumerate(listed):
        chains[subject_of(action)].append(index)
    stages: dict[int, Stage] = {}
    for chain in chains.values():
        own = [_own_stage(listed[index]) for index in chain]
        stage = next((each for each in own if each is not None), Stage.NOTE)
        if own[0] is None and stage is Stage.EVICT:
            stage = Stage.PROTECT
        for index, each in zip(chain, own, strict=True):
            stage = stage if each is None else max(stage, each)
            if stage is Stage.EVICT and each is not Stage.EVICT:
                stage = Stage.TERMINATE
            stages[index] = stage
    order = sorted(range(len(listed)), key=lambda index: (stages[index], _lowers(listed[index])))
    return [(stages[index], listed[index]) for index in order]


def in_order(actions: Iterable[AnyAction]) -> tuple[AnyAction, ...]:
    """Return the actions in the order of execution."""
    return tuple(action for _, action in staged(actions))


def _own_stage(action: AnyAction) -> Stage | None:
    """Return an action's stage by its kind; None for an annotation, which goes with others."""
    match action:
        case SetCapacity():
            return Stage.PURCHASE
        case TaintNode() | UntaintNode():
            return Stage.PROTECT
        case EvictPod() | DeletePod():
            return Stage.EVICT
        case TerminateInstance():
            return Stage.TERMINATE
        case DeleteNode():
            return Stage.DELETE_NODE
        case AnnotateNode():
            return None


def _lowers(action: AnyAction) -> bool:
    """Return whether a target is lowered; raises come first, as pods wait for them."""
    return isinstance(action, SetCapacity) and action.to_capacity < action.from_capacity
