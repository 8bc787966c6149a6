"""The rolling update of one fleet, as one plan sees it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from reconciler.model.cluster import Node
from reconciler.model.ids import FleetKey, NodeName
from reconciler.model.plan import FleetUpdate, UpdateState
from reconciler.model.text import counted_noun
from reconciler.planner.fleets.updates.batch_annotation import BatchAnnotation
from reconciler.planner.fleets.updates.canary import Canary

_NAMED_MAX: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """The rolling update of one fleet."""

    key: FleetKey
    version: str
    state: UpdateState
    because: str
    old: Mapping[NodeName, str]
    """Why each node is drifted, in words."""
    batch: Mapping[NodeName, BatchAnnotation]
    """The drifted nodes that are being replaced now, by number."""
    unknown: frozenset[NodeName] = frozenset()
    """Those of them of which EC2 does not show now whether they are drifted."""
    new: tuple[Node, ...]
    """Nodes that are as the fleet launches them now."""
    taking: frozenset[NodeName] = frozenset()
    """Those of the new nodes that take pods."""
    staying: frozenset[NodeName] = frozenset()
    """Those of them that are neither cordoned nor leaving."""
    not_new: tuple[Node, ...] = ()
    """Nodes launched since the batch began that are drifted, or of which EC2 does not show from
    what they were launched: no node is drained for them, but they were paid for."""
    canary: Canary = field(default_factory=Canary)
    """What is known about the version."""
    spare: int
    """How many nodes that take pods `min_in_service` can do without; 0 if it is not set."""
    may_go: frozenset[NodeName]
    """Nodes of the batch that no longer wait for a new node."""
    batch_max: int
    """How many nodes the next batch may have; 0 while none may begin."""
    old_take_pods: bool = False
    """Whether pods may move to old nodes outside of the batch: the fleet's `max_capacity` has no
    room for the new nodes, or had none when their drain began, and `min_in_service` lets
    nodes leave without them."""
    version_known: bool = True
    """Whether EC2 returns that version; else it is the last known one."""

    @property
    def halted(self) -> bool:
        """Return whether it stands still until the version changes or a person resumes it."""
        return self.state == "halted"

    @property
    def successors(self) -> tuple[Node, ...]:
        """Return the new nodes since the batch began, whether or not they take pods yet."""
        began = min((batch.at for batch in self.batch.values()), default=None)
        if began is None:
            return ()
        return tuple(n for n in self.new if n.created_at is not None and n.created_at >= began)

    @property
    def successors_taking_pods(self) -> tuple[Node, ...]:
        """Return those of them that take pods and stay."""
        return tuple(node for node in self.successors if node.name in self.staying)

    @property
    def unused_successors(self) -> tuple[Node, ...]:
        """Return those that took pods and are now cordoned or leaving."""
        gone = (node for node in self.successors if node.name not in self.staying)
        return tuple(node for node in gone if node.name in self.taking)

    def awaits(self, node: Node) -> bool:
        """Return whether pods of the batch are to move to the node.

        They may have to wait until EC2 shows that the node is new. Ended before that, it would be
        bought again and again.
        """
        came = any(node.name == each.name for each in (*self.successors, *self.not_new))
        return came and (node.name in self.staying or node.name not in self.taking)

    @property
    def awaiting_unlike_nodes(self) -> frozenset[NodeName]:
        """Return the nodes of the batch that wait for a new node, and got one that is not new."""
        came = len(self.successors_taking_pods) + len(self.not_new)
        waiting = self.batch.keys() - self.may_go - self.unknown
        return frozenset(name for name in waiting if self.batch[name].number <= came)

    @property
    def passing(self) -> frozenset[NodeName]:
        """Return the nodes that are no destination for pods, which would move once more."""
        if self.state in {"halted", "closed"}:
            return frozenset()
        return frozenset(self.batch if self.old_take_pods else self.old)

    @property
    def successors_wanted(self) -> int:
        """Return how many of these the batch needs in all."""
        return max((batch.number for batch in self.batch.values()), default=0)

    @property
    def shown(self) -> FleetUpdate:
        """Return what the plan shows of the update."""
        return FleetUpdate(
            fleet=self.key.name,
            region=self.key.region,
            version=self.version,
            state=self.state,
            because=self.because,
            old=len(self.old),
            new=len(self.new),
        )


def unlike_nodes(update: Update) -> str:
    """Return what to add to what a batch waits for, if nodes joined that do not count as new."""
    if not update.not_new:
        return ""
    named = ", ".join(sorted(node.name for node in update.not_new)[:_NAMED_MAX])
    joined = counted_noun(len(update.not_new), "node")
    return f"; not counted as new: {joined} that joined since ({named})"
