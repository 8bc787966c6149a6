"""Replacement sets: decisions to replace several nodes together, as they are kept on the nodes.

Every node of a set carries the same annotation: when it was decided, which new nodes were asked
for, and what that saves. So any replica can continue it, after a restart too.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.model.actions import REPLACEMENT_SET, REPLACEMENT_SET_FAILED
from reconciler.model.cluster import Node
from reconciler.model.ids import FleetKey, NodeName, Region
from reconciler.model.text import counted_noun, parse_rfc3339, rfc3339
from reconciler.planner.clocks import is_beyond_skew
from reconciler.planner.cool_off import COOL_OFF
from reconciler.planner.disruption.blocker import Blocker
from reconciler.planner.disruption.drains.attempts import Attempts, read_attempts
from reconciler.planner.money import NANO
from reconciler.planner.nodes.drain_taints import is_draining
from reconciler.planner.nodes.starting import takes_pods
from reconciler.planner.view import ClusterView

LASTS_MAX = timedelta(hours=1)
"""A set is given up if its nodes have not gone this long after the new ones should have joined."""
HELD_MAX = timedelta(days=1)
"""The same while only limits on the number of disrupted nodes keep its nodes: what a budget for
office hours holds continues in the evening."""
TEXT_MAX = 2_000
"""Longer annotations are not decoded."""
LONGER_EACH_TIME = 4
"""How long the nodes of a set that failed belong to no other set.

It is longer than for single nodes, as the failed set bought nodes that were not used.
"""
_FORGOTTEN_AFTER = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacementSet:
    """Nodes that are removed together, and the new nodes that take their pods."""

    at: datetime
    """When it was decided."""
    sector: str
    wanted: Mapping[FleetKey, int]
    """How many new nodes of each fleet were asked for."""
    members: tuple[Node, ...]
    """The nodes of the set that still exist, including those that drain."""
    came: tuple[NodeName, ...]
    """Those of the new nodes that have joined and take pods."""

    @property
    def names(self) -> frozenset[NodeName]:
        """Return the names of its members."""
        return frozenset(node.name for node in self.members)

    @property
    def complete(self) -> bool:
        """Return whether all new nodes have joined and take pods."""
        return len(self.came) >= sum(self.wanted.values())


class SetsUnderWay:
    """The sets of earlier plans that are not finished.

    Args:
        view: The facts.
    """

    def __init__(self, view: ClusterView) -> None:
        noted: dict[str, list[Node]] = {}
        for name in sorted(view.inventory.fleet_of_node):
            text = view.nodes[name].annotations.get(REPLACEMENT_SET)
            if text is not None:
                noted.setdefault(text, []).append(view.nodes[name])
        self.unreadable: list[Node] = []
        """Nodes whose annotation cannot be decoded; it is removed."""
        self.found: list[ReplacementSet] = []
        for text, nodes in noted.items():
            decided = _decode(text, view.at)
            if decided is None:
                self.unreadable += nodes
            elif any(node.name not in view.inventory.leaving for node in nodes):
                self.found.append(_read(view, *decided, nodes))
        self._set_of = {
            node.name: replacement_set
            for replacement_set in self.found
            for node in replacement_set.members
        }
        self._new = {
            name: replacement_set for replacement_set in self.found for name in replacement_set.came
        }

    def set_of(self, name: NodeName) -> ReplacementSet | None:
        """Return the set with which the node is to leave; None if it belongs to none."""
        return self._set_of.get(name)

    def blocker(self, name: NodeName) -> Blocker | None:
        """Return a blocker if the node is new and is to take the pods of a set; else None."""
        replacement_set = None if name in self._set_of else self._new.get(name)
        if replacement_set is None:
            return None
        nodes = counted_noun(len(replacement_set.members), "node")
        return Blocker("consolidation", f"the pods of {nodes} are to move to it")

    @property
    def sectors(self) -> frozenset[str]:
        """Return the sectors in which a set is under way: no other set begins there."""
        return frozenset(replacement_set.sector for replacement_set in self.found)


def encode(at: datetime, wanted: Mapping[FleetKey, int], saving_nano_usd: int) -> str:
    """Return the set as the text of the annotation."""
    new = {f"{key.name}@{key.region}": count for key, count in sorted(wanted.items())}
    noted = {"at": rfc3339(at), "new": new, "saves_usd_per_hour": saving_nano_usd / NANO}
    return json.dumps(noted, separators=(",", ":"))


def last_failure(view: ClusterView, node: Node) -> Attempts | None:
    """Return when sets of the node were given up last, and how often in a row.

    None if that was more than a day ago, or never.
    """
    noted = node.annotations.get(REPLACEMENT_SET_FAILED, "")
    return read_attempts(noted, view.at, _FORGOTTEN_AFTER)


def rests_until(view: ClusterView, node: Node) -> datetime | None:
    """Return until when the node must not belong to a new set; None if it may now."""
    failed = last_failure(view, node)
    if failed is None:
        return None
    longer = LONGER_EACH_TIME ** min(failed.count - 1, 8)
    until = failed.latest + min(COOL_OFF * longer, _FORGOTTEN_AFTER)
    return until if until > view.at else None


def failed_again(view: ClusterView, node: Node) -> Attempts:
    """Return the record of one more failed set of the node."""
    failed = last_failure(view, node)
    return Attempts(latest=view.at, count=1 if failed is None else failed.count + 1)


def _decode(text: str, at: datetime) -> tuple[datetime, dict[FleetKey, int]] | None:
    """Return when the set was decided and what it asked for; None if the text cannot be decoded.

    A time further in the future than clocks may differ is refused too: the set would last until
    then.
    """
    try:
        noted = json.loads(text) if len(text) <= TEXT_MAX else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(noted, dict) or not isinstance(noted.get("new"), dict):
        return None
    decided = parse_rfc3339(noted["at"]) if isinstance(noted.get("at"), str) else None
    wanted = {_key(name): count for name, count in noted["new"].items()}
    if decided is None or is_beyond_skew(decided, at):
        return None
    if not all(type(n) is int and n > 0 for n in wanted.values()):
        return None
    return min(decided, at), wanted


def _key(text: str) -> FleetKey:
    name, _, region = text.partition("@")
    return FleetKey(name=name, region=Region(region))


def _read(
    view: ClusterView, at: datetime, wanted: Mapping[FleetKey, int], nodes: list[Node]
) -> ReplacementSet:
    owners = view.inventory.fleet_of_node
    came = [
        name for key, most in wanted.items() for name in _joined_since(view, key, at, most, nodes)
    ]
    return ReplacementSet(
        at=at,
        sector=view.statuses[owners[nodes[0].name]].settings.sector,
        wanted=wanted,
        members=tuple(n for n in nodes if n.name not in view.inventory.leaving),
        came=tuple(came),
    )


def _joined_since(
    view: ClusterView, key: FleetKey, at: datetime, most: int, members: Iterable[Node]
) -> list[NodeName]:
    """Return the first `most` nodes of the fleet that joined after the decision and take pods."""
    status = view.statuses.get(key)
    if status is None:
        return []
    going = {node.name for node in members} | view.inventory.leaving
    joined = sorted(
        (node.created_at, node.name)
        for node in status.nodes
        if node.created_at is not None
        and node.created_at > at
        and takes_pods(node, view.settings)
        and node.name not in going
        and node.name not in view.unequipped
        and not is_draining(node)
    )
    return [name for _, name in joined[:most]]
