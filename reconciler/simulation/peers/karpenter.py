"""A model of Karpenter, based on the sources of its core 1.14.

Source: kubernetes-sigs/karpenter, v1.14.1: pkg/controllers/provisioning (batcher, provisioner,
scheduling), pkg/controllers/disruption, pkg/controllers/node/termination; read 2026-11.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from reconciler.model.cluster import Node, Pod, Taint
from reconciler.model.fleet import Instance
from reconciler.model.ids import FleetKey, InstanceId, NodeName
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.rules.annotations import keeps
from reconciler.simulation.peers.access import Access, wants_node
from reconciler.simulation.peers.claims import Solver, cheapest
from reconciler.simulation.peers.consolidation import (
    METHODS,
    Command,
    Consolidation,
    Situation,
    lift,
)
from reconciler.simulation.peers.drain import Drain, DrainEnd, Pace

DISRUPTED = Taint(key="karpenter.sh/disrupted", value="", effect="NoSchedule")
POLL_SECONDS = 10.0
"""Between two searches for nodes to disrupt, and two reads of the interruption queue."""
VALIDATION_SECONDS = 15.0
"""From a decision to its validation and execution."""
CONSOLIDATED_SECONDS = 300.0
"""While nothing changes, the search is not repeated for this time."""
AGAIN_SECONDS = 10.0
"""A pod that still has no node triggers a batch again after this time."""
NOMINATION_SECONDS = 20.0
"""A node that a pod was nominated for is not disrupted for this time."""
POD_EVENT_SECONDS = 10.0
"""Pod events of a node do not count for this time after one that counted."""
UNAVAILABLE_SECONDS = 180.0
"""How long an offer is not requested after EC2 had no capacity for it."""
REPLACEMENT_SECONDS = 600.0
"""A replacement that is not a node by then ends its command."""
LAST_MOMENT_SECONDS = 118.0
"""Of the 120 s before EC2 takes an instance back."""
PACE = Pace(first_wait_seconds=0, retry_seconds=1, poll_seconds=1)
EMPTY_PACE = Pace(first_wait_seconds=5, retry_seconds=1, poll_seconds=1)
INTERRUPTION = "interruption"

MODELLED = (
    "a NodePool for each sector, whose offers are the types of its fleets in each zone",
    (
        "batches (idle and longest duration); pods by CPU, then memory; existing nodes first, "
        "then claims, of which the cheapest type that holds the pods is launched"
    ),
    (
        "WhenEmptyOrUnderutilized: every 10 s empty nodes, then as many nodes together as "
        "go, found by halving, then one node; replaced by one cheaper node where needed; "
        "carried out 15 s later if it still holds"
    ),
    (
        "consolidateAfter by pod events, nominations of 20 s, a budget of disrupted nodes, "
        "PodDisruptionBudgets, replacements that are Ready before their nodes are emptied"
    ),
    ("interruptions from its queue, within 10 s; an offer without capacity is left for 3 minutes"),
    "an instance that is no node after 15 minutes is ended, and another bought for its pods",
)
LEFT_OUT = (
    "minimum sizes: it has none",
    (
        "other types than the fleets name; preferences of pods; drift, expiry, spot-to-spot "
        "consolidation, capacity reservations"
    ),
    ("a claim has a zone from its beginning: of those that will do, the one with fewest nodes"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KarpenterSettings:
    """Its settings and those of its NodePools, with its defaults."""

    batch_idle_seconds: float = 1.0
    batch_max_seconds: float = 10.0
    consolidate_after_seconds: float = 0.0
    budget_percent: int = 10
    """Of the nodes of each sector, which stands for a NodePool."""


class Karpenter:
    """The model, with consolidationPolicy WhenEmptyOrUnderutilized.

    Args:
        access: The world.
        settings: Its settings.
    """

    def __init__(self, access: Access, settings: KarpenterSettings) -> None:
        self._access, self._settings = access, settings
        self._clock = access.clock
        self.passes = 0
        self._asked_for_node = False
        self._batch_began: float | None = None
        self._batch_until = 0.0
        self._again = False
        self._deleting: set[NodeName] = set()
        """Nodes that are being replaced or emptied; their pods count as demand."""
        self._nominated: dict[NodeName, float] = {}
        self._event_at: dict[NodeName, float] = {}
        """The last pod event of each node."""
        self._unavailable: dict[FleetKey, float] = {}
        self._consolidated: tuple[float, int] | None = None
        """When nothing was found to do, and at which version of the world."""
        access.world.objects.pod_watchers.append(self._pod_changed)
        self._clock.call_later(POLL_SECONDS, self._poll)
        self._clock.call_later(POLL_SECONDS, self._read_queue)

    # ---- provisioning ---------------------------------------------------------------------

    def _pod_changed(self, before: Pod | None, after: Pod | None) -> None:
        if before is None and after is not None and not self._asked_for_node and wants_node(after):
            self._asked_for_node = True
            self._clock.call_later(0.0, self._begin_batch)
        self._note_event(before, after)

    def _note_event(self, before: Pod | None, after: Pod | None) -> None:
        """Note that a pod was bound, ended or stops: its node is not disrupted for a while."""
        pod = after or before
        if pod is None or pod.daemon or pod.node_name is None or _stage(before) == _stage(after):
            return
        now = self._access.now
        if now - self._event_at.get(pod.node_name, float("-inf")) >= POD_EVENT_SECONDS:
            self._event_at[pod.node_name] = now

    def _begin_batch(self) -> None:
        self._asked_for_node = False
        if self._access.waiting:
            self._trigger()

    def _trigger(self) -> None:
        """Begin a batch, or extend the one that is collecting."""
        now, settings = self._access.now, self._settings
        if self._batch_began is None:
            self._batch_began = now
            self._clock.call_later(settings.batch_idle_seconds, self._gathered)
        last = self._batch_began + settings.batch_max_seconds
        self._batch_until = min(now + settings.batch_idle_seconds, last)

    def _gathered(self) -> None:
        left = self._batch_until - self._access.now
        if left > 1e-6:
            self._clock.call_later(left, self._gathered)
            return
        self._batch_began = None
        self._provision()

    def _provision(self) -> None:
        """Request what the batch needs in addition to existing and launching nodes."""
        if self._access.waiting or self._deleting:
            self.passes += 1
            builder = self._access.look()
            pods = [(pod, w.pod_class) for w in builder.waiting for pod in w.pods]
            rows = builder.sim.rows
            pods += lift(builder, self._deleting)
            if pods:
                among = np.ones(rows, dtype=np.bool_)
                solution = Solver(builder, self._available(builder)).solve(pods, among)
                for claim in solution.claims:
                    self._launch(cheapest(builder, claim.offers))
                self._nominate(builder, solution.rows)
        self._access.passed()
        if not self._again and (self._access.waiting or self._deleting):
            self._again = True
            self._clock.call_later(AGAIN_SECONDS, self._try_again)

    def _try_again(self) -> None:
        self._again = False
        if self._access.waiting or self._deleting:
            self._trigger()

    def _available(self, builder: PlanBuilder) -> list[FleetKey]:
        now = self._access.now
        return [
            key
            for key in builder.view.offers
            if self._unavailable.get(key, 0.0) <= now and self._access.room_for(key)
        ]

    def _launch(self, key: FleetKey) -> Instance | None:
        launched = self._access.launch(key, 1) if self._access.room_for(key) else []
        if launched:
            return launched[0]
        self._unavailable[key] = self._access.now + UNAVAILABLE_SECONDS
        self._clock.call_later(self._settings.batch_idle_seconds, self._trigger)
        return None

    def _nominate(self, builder: PlanBuilder, rows: Sequence[int] | dict[int, list[Pod]]) -> None:
        until = self._access.now + NOMINATION_SECONDS
        for row in rows:
            if row < len(builder.view.nodes):
                self._nominated[builder.row_name(row)] = until

    # ---- disruption -----------------------------------------------------------------------

    def _poll(self) -> None:
        """Search for nodes to disrupt; after an executed decision, search again at once."""
        if not self._is_worth_a_look() or not self._try_methods(0):
            self._clock.call_later(POLL_SECONDS, self._poll)

    def _is_worth_a_look(self) -> bool:
        """Return whether anything changed, or a node has been quiet for long enough since."""
        now = self._access.now
        if self._consolidated is None or self._consolidated[1] != self._access.version:
            return True
        found, _ = self._consolidated
        if now - found >= CONSOLIDATED_SECONDS:
            return True
        after = self._settings.consolidate_after_seconds
        return any(found < at + after <= now for at in self._event_at.values()) or any(
            found < until <= now for until in self._nominated.values()
        )

    def _try_methods(self, first: int) -> bool:
        """Try the methods in their order; return whether one of them decided something."""
        self.passes += 1
        consolidation = self._consolidation()
        for number in range(first, len(METHODS)):
            command = consolidation.decide(METHODS[number])
            if command is not None:
                check = partial(self._validate, number, command)
                self._clock.call_later(VALIDATION_SECONDS, check)
                return True
        self._consolidated = (self._access.now, self._access.version)
        return False

    def _consolidation(self) -> Consolidation:
        now = self._access.now
        builder = self._access.look()
        nodes = builder.view.nodes
        self._event_at = {n: at for n, at in self._event_at.items() if n in nodes}
        self._nominated = {n: t for n, t in self._nominated.items() if n in nodes and t > now}
        after = self._settings.consolidate_after_seconds
        young = {
            name
            for name, node in nodes.items()
            if now - self._event_at.get(name, self._begin_of(node)) < after
        }
        return Consolidation(
            builder,
            Situation(
                deleting=frozenset(self._deleting),
                nominated=frozenset(self._nominated),
                young=frozenset(young),
                budget_percent=self._settings.budget_percent,
                available=self._available(builder),
            ),
        )

    def _begin_of(self, node: Node) -> float:
        """Return when the node was created."""
        if node.created_at is None:
            return 0.0
        return self._access.now - (self._clock.now() - node.created_at).total_seconds()

    def _validate(self, number: int, command: Command) -> None:
        """Execute the decision if it is still valid; else continue with the next method."""
        still = self._consolidation().validated(command)
        if still is not None:
            self._start(still)
            self._clock.call_later(0.0, self._poll)
        elif number + 1 == len(METHODS) or not self._try_methods(number + 1):
            self._clock.call_later(POLL_SECONDS, self._poll)

    def _start(self, command: Command) -> None:
        """Taint the nodes, launch the replacement, and wait for it."""
        names = [node.name for node in command.nodes]
        for name in names:
            self._access.taint(name, DISRUPTED)
        replacement: Instance | None = None
        if command.replacement is not None:
            replacement = self._launch(command.replacement)
            if replacement is None:
                for name in names:
                    self._access.untaint(name, DISRUPTED.key)
                return
        self._deleting.update(names)
        until = self._access.now + NOMINATION_SECONDS
        self._nominated.update(dict.fromkeys(command.nominated, until))
        self._await(command, replacement, self._access.now + REPLACEMENT_SECONDS)

    def _await(self, command: Command, replacement: Instance | None, until: float) -> None:
        if replacement is not None and self._access.node_of(replacement.id) is None:
            if self._access.now < until:
                self._clock.call_later(1.0, partial(self._await, command, replacement, until))
                return
            for node in command.nodes:
                self._access.untaint(node.name, DISRUPTED.key)
                self._deleting.discard(node.name)
            return
        for node in command.nodes:
            self._drain(node, command.reason)
        self._trigger()

    def _drain(self, node: Node, reason: str) -> None:
        self._deleting.add(node.name)
        has_pods = bool(self._access.pods_on(node.name))
        Drain(
            self._access,
            node,
            PACE if has_pods else EMPTY_PACE,
            reason,
            partial(self._drained, node.name),
            may_evict=lambda pod: not keeps(pod, self._access.clock.now()),
        )

    def _drained(self, name: NodeName, _end: DrainEnd) -> None:
        self._deleting.discard(name)

    # ---- interruptions --------------------------------------------------------------------

    def _read_queue(self) -> None:
        messages = self._access.world.messages
        for message, notices in messages.receive().items():
            messages.delete([message])
            for notice in notices:
                if notice.kind == "spot-interruption" and notice.instance is not None:
                    self._interrupted(notice.instance)
        self._clock.call_later(POLL_SECONDS, self._read_queue)

    def _interrupted(self, instance_id: InstanceId) -> None:
        """Empty the node of an interrupted instance, and buy nodes for its pods."""
        node = self._access.node_of(instance_id)
        if node is None:
            self._access.end(instance_id)
            self._trigger()
            return
        left = LAST_MOMENT_SECONDS - POLL_SECONDS
        self._clock.call_later(left, lambda: self._access.end(instance_id))
        if node.name not in self._deleting:
            self._access.taint(node.name, DISRUPTED)
            self._drain(node, INTERRUPTION)
            self._trigger()


def _stage(pod: Pod | None) -> str:
    """Return "waits" before a pod has a node, then "runs"; "over" when it ends or is gone."""
    if pod is None or pod.finished or pod.deleting:
        return "over"
    return "waits" if pod.node_name is None else "runs"
