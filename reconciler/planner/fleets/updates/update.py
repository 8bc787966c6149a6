"""The rolling update of one fleet, as one plan sees it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.model.cluster import Node
from reconciler.model.ids import FleetKey, NodeName
from reconciler.model.plan import FleetUpdate, UpdateState
from reconciler.planner.fleets.updates.batch_mark import BatchMark
from reconciler.planner.fleets.updates.canary import Canary


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """The rolling update of one fleet."""

    key: FleetKey
    version: str
    state: UpdateState
    because: str
    old: Mapping[NodeName, str]
    """Why each node is drifted, in words."""
    batch: Mapping[NodeName, BatchMark]
    """The drifted nodes that are being replaced now, by number."""
    new: tuple[Node, ...]
    """Nodes that are as the fleet launches them now."""
    taking: frozenset[NodeName] = frozenset()
    """Those of the new nodes that take pods."""
    staying: frozenset[NodeName] = frozenset()
    """Those of them that are neither cordoned nor leaving."""
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
    version_told: bool = True
    """Whether EC2 returns that version; else it is the last known one."""

    @property
    def halted(self) -> bool:
        """Return whether it stands still until the version changes or a person resumes it."""
        return self.state == "halted"

    @property
    def successors(self) -> tuple[Node, ...]:
        """Return the new nodes since the batch began, whether or not they take pods yet."""
        began = min((mark.at for mark in self.batch.values()), default=None)
        if began is None:
            return ()
        return tuple(n for n in self.new if n.created_at is not None and n.created_at >= began)

    @property
    def successors_taking_pods(self) -> tuple[Node, ...]:
        """Return those of them that take pods and stay."""
        return tuple(node for node in self.successors if node.name in self.staying)

    @property
    def successors_in_vain(self) -> tuple[Node, ...]:
        """Return those that took pods and are now cordoned or leaving."""
        gone = (node for node in self.successors if node.name not in self.staying)
        return tuple(node for node in gone if node.name in self.taking)

    def awaits(self, node: Node) -> bool:
        """Return whether pods of the batch are to move to the node."""
        came = any(node.name == each.name for each in self.successors)
        return came and (node.name in self.staying or node.name not in self.taking)

    @property
    def passing(self) -> frozenset[NodeName]:
        """Return the nodes that are no destination for pods, which would move once more."""
        if self.state in {"halted", "closed"}:
            return frozenset()
        return frozenset(self.batch if self.old_take_pods else self.old)

    @property
    def successors_wanted(self) -> int:
        """Return how many of these the batch needs in all."""
        return max((mark.number for mark in self.batch.values()), default=0)

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
