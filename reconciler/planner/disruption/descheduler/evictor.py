"""Decides which proposed pods are evicted, by filters, places, limits and budgets."""

from collections.abc import Callable, Iterable

from reconciler.model.actions import EvictPod
from reconciler.model.cluster import Pod
from reconciler.model.ids import NodeName, PodKey
from reconciler.model.plan import Placement
from reconciler.planner.builder_values import KeptPod
from reconciler.planner.descheduler_settings import DeschedulerSettings
from reconciler.planner.disruption.blocker import Blocker
from reconciler.planner.disruption.blockers.settling import settled_at
from reconciler.planner.disruption.descheduler.facts import Proposal, Proposals
from reconciler.planner.disruption.descheduler.places import Places
from reconciler.planner.disruption.descheduler.pod_blockers import PodBlockers
from reconciler.planner.disruption.disruption_context import DisruptionContext


class Evictor:
    """Evicts the proposed pods that may go, and notes why the others stay.

    Args:
        context: The limits of this plan.
        moved: The pods evicted so far, and where each is expected. It grows, and policies read it.
        places: Where evicted pods would be placed.
        settings: The descheduler's settings.
    """

    def __init__(
        self,
        context: DisruptionContext,
        moved: dict[PodKey, NodeName],
        places: Places,
        settings: DeschedulerSettings,
    ) -> None:
        self._context = context
        self._moved = moved
        self._places = places
        self._settings = settings
        self._settled: dict[NodeName, bool] = {}
        """The nodes that were asked about so far; all pods of a node have one answer."""

    def run(self, blockers: PodBlockers, policies: Iterable[Proposals]) -> None:
        """Run the policies of a profile in order.

        Args:
            blockers: What the profile keeps.
            policies: Their proposals.
        """
        for proposals in policies:
            self._places.searches.begin_policy()
            try:
                proposal = next(proposals)
                while True:
                    proposal = proposals.send(self._decided(proposal, blockers))
            except StopIteration:
                continue

    def _decided(self, proposal: Proposal, blockers: PodBlockers) -> NodeName | None:
        """Evict the pod, or note why it stays.

        Returns:
            The node on which the pod is expected; None if it stays.
        """
        pod = proposal.pod
        if pod.key in self._moved:
            return self._moved[pod.key]
        blocker = self._blocker(proposal, blockers)
        place = None if blocker is not None else self._place(proposal, blockers)
        blocker = blocker or (place if isinstance(place, Blocker) else None)
        if blocker is not None:
            kept = KeptPod(proposal.policy, proposal.reason, blocker.code, blocker.detail)
            self._context.builder.keep_pod(pod.key, kept)
            return None
        assert not isinstance(place, Blocker)
        self._evict(proposal, place)
        return place or pod.node_name

    def _blocker(self, proposal: Proposal, blockers: PodBlockers) -> Blocker | None:
        """Return the first reason why the pod stays, before a place is looked for."""
        checks: tuple[Callable[[Proposal], Blocker | None], ...] = (
            blockers.first,
            self._unsettled,
            self._limit,
        )
        return next((blocker for check in checks if (blocker := check(proposal)) is not None), None)

    def _unsettled(self, proposal: Proposal) -> Blocker | None:
        """Return a blocker when a pod came to the node within `settle_time`."""
        node = proposal.pod.node_name
        if not proposal.balances or node is None:
            return None
        if node not in self._settled:
            self._settled[node] = self._has_settled(node)
        if self._settled[node]:
            return None
        return Blocker("settling", f"a pod came to {node} a short time ago")

    def _has_settled(self, node: NodeName) -> bool:
        view = self._context.view
        status = view.statuses[view.inventory.fleet_of_node[node]]
        until = settled_at(
            view.pods_on.get(node, ()), "scale-in", status.settings.scale_in, view.at
        )
        return until is None or until <= view.at

    def _limit(self, proposal: Proposal) -> Blocker | None:
        return self._context.ledger.pod_blocker(proposal.pod, self._settings)

    def _place(self, proposal: Proposal, blockers: PodBlockers) -> NodeName | Blocker | None:
        """Return the node on which the pod would be placed, or why it has to stay.

        None for a pod that has ended: it needs no place.
        """
        if proposal.pod.finished:
            return None
        return self._places.take(proposal, blockers.destinations)

    def _evict(self, proposal: Proposal, place: NodeName | None) -> None:
        pod, context = proposal.pod, self._context
        node = pod.node_name
        assert node is not None
        context.ledger.take_pod(pod)
        self._moved[pod.key] = place or node
        expected = f"; {place} takes it" if place is not None else ""
        action = EvictPod(
            pod=pod.key,
            node=node,
            grace_seconds=self._grace_seconds(pod, node),
            policy="deschedule",
            because=f"{proposal.policy}: {proposal.reason}{expected}",
            pod_policy=proposal.policy,
        )
        moved = None if place is None else Placement(pod=pod.key, node=place, moved_from=node)
        context.builder.evict(action, moved)

    def _grace_seconds(self, pod: Pod, node: NodeName) -> int:
        """Return the smallest of the grace periods of the pod, the fleet and the policy file."""
        view = self._context.view
        status = view.statuses[view.inventory.fleet_of_node[node]]
        limits = [status.settings.scale_in.graceful_termination_max_seconds]
        if self._settings.grace_seconds_max is not None:
            limits.append(self._settings.grace_seconds_max)
        return int(min(pod.spec.termination_grace_seconds, *limits))
