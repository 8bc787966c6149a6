"""Labels and taints that a group's nodes have in common: its next node will have them too.

Only for groups that Terraform does not make from this config: for others the config has them all.
They are remembered when the last node is gone; otherwise an empty group would seem to have none.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import chain
from typing import Final

from reconciler.model.cluster import Node, Taint
from reconciler.model.fleet import Instance
from reconciler.model.frozen import NO_LABELS, Labels
from reconciler.model.ids import NodeName
from reconciler.model.saved_state import NODE_FACTS_MAX, SavedFleetState
from reconciler.planner.fleets.group_tags import with_tags
from reconciler.planner.fleets.inventory import FleetStatus, Inventory
from reconciler.planner.fleets.live_fleet import is_of_template
from reconciler.planner.fleets.version import template_of
from reconciler.planner.nodes.starting import is_startup_taint, takes_pods
from reconciler.planner.placement.kinds import (
    ARCH,
    HOSTNAME,
    INSTANCE_TYPE,
    OLDER_KEYS,
    OPERATING_SYSTEM,
)
from reconciler.planner.settings import PlannerSettings

REMEMBERED_FOR: Final = timedelta(days=7)
"""How long they are remembered after the last node is gone: longer than a weekend.

Then only the tags count: a label that a person gave the last node should not count forever.
"""
NODES_MAX: Final = 15
"""How many nodes of a group are read: the newest are most like its next one."""
_OF_ONE_NODE: Final = frozenset(
    {HOSTNAME, ARCH, INSTANCE_TYPE, OPERATING_SYSTEM, *OLDER_KEYS.values()}
)
"""Labels that the next node has with another value, or that follow from its instance type."""
_PLACES: Final = ("topology.", "failure-domain.")
_OURS: Final = "fleet-reconciler.io/"
_PASSING_TAINTS: Final = (
    _OURS,
    "node.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
    "aws-node-termination-handler/",
)
"""Prefixes of keys of taints that show a node's condition, or that it is to be removed.

Source: cluster-autoscaler/utils/taints (read 2026-11); aws-node-termination-handler, its README.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    """What nodes have in common."""

    labels: Labels = NO_LABELS
    taints: tuple[Taint, ...] = ()


def with_shown_nodes(inventory: Inventory, settings: PlannerSettings, at: datetime) -> Inventory:
    """Return the inventory with what tags and nodes of groups say about their next nodes.

    What is remembered changes only if AWS shows the group.
    """
    saved_states = {
        (fleet_state.fleet, fleet_state.region): fleet_state
        for fleet_state in inventory.fleet_states
    }
    fleets: list[FleetStatus] = []
    for stated in inventory.fleets:
        if not stated.settings.is_made_elsewhere:
            fleets.append(stated)
            continue
        place = (stated.key.name, stated.key.region)
        before = saved_states.get(place, SavedFleetState(fleet=place[0], region=place[1]))
        status, after = _with_shown(stated, before, inventory.instance_of_node, settings, at)
        fleets.append(status)
        if after != before:
            saved_states[place] = after
    return replace(
        inventory,
        fleets=tuple(fleets),
        fleet_states=tuple(saved_states[place] for place in sorted(saved_states)),
    )


def _with_shown(
    stated: FleetStatus,
    saved: SavedFleetState,
    instances: Mapping[NodeName, Instance],
    settings: PlannerSettings,
    at: datetime,
) -> tuple[FleetStatus, SavedFleetState]:
    """Return a group with what its tags and nodes say, and what is to be remembered."""
    fleet, live = stated.settings, stated.live
    # A group that was found has only its tags, which its nodes may contradict.
    own = fleet.labels if fleet.sector else NO_LABELS
    tagged = fleet
    if live is not None:
        tagged = with_tags(fleet, live.tags, settings.startup_taints)
    present, older = _by_template(stated, instances, settings)
    shown = _in_common(present or older, settings.startup_taints)
    labels = Labels(
        (key, value)
        for key, value in shown.labels.items()
        if key not in own and tagged.labels.get(key) != value
    )
    known = {(taint.key, taint.effect) for taint in tagged.taints}
    taints = tuple(each for each in shown.taints if (each.key, each.effect) not in known)
    if live is not None:
        found = _Shown(labels=labels, taints=taints) if present else None
        saved = _remembering(saved, found, template_of(live), at)
    if not present:
        # People taint old nodes to move off a launch template, so taints of older ones are ignored.
        labels, taints = labels if older else saved.node_labels, saved.node_taints
    status = replace(stated, settings=tagged, shown_labels=labels, shown_taints=taints)
    return status, saved


def _by_template(
    status: FleetStatus, instances: Mapping[NodeName, Instance], settings: PlannerSettings
) -> tuple[Sequence[Node], Sequence[Node]]:
    """Return the nodes that take pods, of the present launch template and of older ones.

    Cordoned nodes are left out: a person who is about to end a node may have tainted it as well.
    """
    parts: tuple[list[Node], list[Node]] = ([], [])
    for node in status.nodes:
        if takes_pods(node, settings) and not (node.unschedulable or node.unreadable):
            parts[not is_of_template(status.live, instances.get(node.name))].append(node)
    return parts


def _in_common(nodes: Sequence[Node], startup_taints: frozenset[str]) -> _Shown:
    """Return the labels and taints that more than half of the newest nodes have.

    A person may have added others to one of them, or removed some.
    """
    nodes = sorted(nodes, key=_age)
    nodes = nodes[-NODES_MAX:]
    labels = Counter(chain.from_iterable(map(_lasting, nodes)))
    every = chain.from_iterable(set(node.taints) for node in nodes)
    taints = Counter(taint for taint in every if _stays(taint, startup_taints))
    most = len(nodes) // 2
    return _Shown(
        labels=Labels(sorted(each for each, n in labels.items() if n > most)),
        taints=tuple(sorted(each for each, n in taints.items() if n > most)),
    )


def _age(node: Node) -> tuple[float, str]:
    return (node.created_at.timestamp() if node.created_at else 0.0, node.name)


def _lasting(node: Node) -> list[tuple[str, str]]:
    """Return the labels that the next node may have too."""
    own = (node.name, node.instance_id)
    return [
        (key, value)
        for key, value in node.labels.items()
        if _may_be_shared(key) and value not in own
    ]


@lru_cache(maxsize=4096)
def _may_be_shared(key: str) -> bool:
    """Return whether a label may have the same value on the next node; called in every plan."""
    return key not in _OF_ONE_NODE and not key.startswith((*_PLACES, _OURS))


def _stays(taint: Taint, startup_taints: frozenset[str]) -> bool:
    passing = is_startup_taint(taint.key, startup_taints)
    return not (passing or taint.key.startswith(_PASSING_TAINTS))


def _remembered(labels: Labels) -> Labels:
    """Return the labels to remember: those of prefixes with few labels come first.

    Programs that detect a node's hardware give it dozens of labels of one prefix.
    """
    if len(labels) <= NODE_FACTS_MAX:
        return labels
    counts = Counter(key.rpartition("/")[0] for key in labels)
    kept = sorted(labels, key=lambda key: (counts[key.rpartition("/")[0]], key))[:NODE_FACTS_MAX]
    return Labels((key, labels[key]) for key in sorted(kept))


def _remembering(
    saved: SavedFleetState, shown: _Shown | None, template: str, at: datetime
) -> SavedFleetState:
    """Return what is known after this snapshot; `shown` is by nodes of the present template."""
    if shown is not None:
        return replace(
            saved,
            node_labels=_remembered(shown.labels),
            node_taints=shown.taints[:NODE_FACTS_MAX],
            node_template=template if shown != _Shown() else "",
            nodes_gone_since=None,
        )
    if not (saved.node_labels or saved.node_taints):
        return saved
    since = saved.nodes_gone_since or at
    changed = template and saved.node_template and template != saved.node_template
    if changed or at - since > REMEMBERED_FOR:
        return replace(
            saved, node_labels=NO_LABELS, node_taints=(), node_template="", nodes_gone_since=None
        )
    return replace(saved, nodes_gone_since=since)
