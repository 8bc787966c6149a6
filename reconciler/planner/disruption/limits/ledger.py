"""The eviction ledger: decides what may be disrupted, and counts what it has allowed."""

from collections import Counter
from collections.abc import Collection
from functools import cached_property

from reconciler.model.cluster import Pod
from reconciler.model.ids import FleetKey, NodeName
from reconciler.model.text import counted_noun
from reconciler.planner.descheduler_settings import DeschedulerSettings
from reconciler.planner.disruption.blocker import Blocker
from reconciler.planner.disruption.drains.rounds import allowed_rounds
from reconciler.planner.disruption.limits.blast_radius import SETTLED_WITHIN, BlastRadiusLimits
from reconciler.planner.disruption.limits.disruption_budgets import DisruptionBudgets
from reconciler.planner.disruption_settings import DisruptionReason
from reconciler.planner.nodes.drain_taints import is_draining_by_us
from reconciler.planner.pod_disruption_budgets import BudgetLedger
from reconciler.planner.view import ClusterView


class EvictionLedger:
    """Decides what may be disrupted, and counts what it has allowed.

    It keeps PodDisruptionBudgets, disruption budgets of nodes, the blast radius and the limits of
    evictions.

    Args:
        view: The facts.
        pod_budgets: The PodDisruptionBudgets, less what forced methods have used.
    """

    def __init__(self, view: ClusterView, pod_budgets: BudgetLedger) -> None:
        self._view = view
        self._fleet_of_node = view.inventory.fleet_of_node
        self._pod_budgets = pod_budgets
        self._node_budgets = DisruptionBudgets(view)
        self._blast_radius = BlastRadiusLimits(view, view.settings.blast_radius)
        self._single: Counter[NodeName] = Counter()
        """Pods evicted from nodes that stay."""
        self._single_by_namespace: Counter[str] = Counter()
        self._disrupted: set[NodeName] = set()
        """Nodes that stay but count in disruption budgets, as pods were evicted from them."""

    # ---- whole nodes ----------------------------------------------------------------------

    def node_blocker(
        self, key: FleetKey, reason: DisruptionReason, node: NodeName | None = None
    ) -> Blocker | None:
        """Return the disruption budget that keeps one more node; None if all allow it.

        Args:
            key: Its fleet.
            reason: Why it would be disrupted.
            node: The node, if a rolling update may have chosen it: then it has its place.
        """
        return self._node_budgets.blocker(key, reason, node)

    def keeps_every_node(self, key: FleetKey, reason: DisruptionReason) -> bool:
        """Return whether a disruption budget in force keeps every node of the fleet."""
        return self._node_budgets.allow_none(key, reason)

    def drain_blocker(
        self, pods: Collection[Pod], *, must_go: bool, overdue: bool = False
    ) -> Blocker | None:
        """Return what keeps the pods of a node from being evicted; None if they may go.

        They may go if PodDisruptionBudgets let at least one pod go now, and the others in a few
        rounds; of a node that must go in as many rounds as it takes.

        Args:
            pods: The pods.
            must_go: Whether the node is to be replaced, or its fleet departs.
            overdue: Whether PodDisruptionBudgets no longer apply (`terminate_after` has passed).
        """
        if overdue:
            return self._blast_radius.blocker(pods)
        return self._pods_blocker(pods, allowed_rounds(pods, must_go=must_go))

    def keeps_for_long(
        self, pods: Collection[Pod], *, must_go: bool, overdue: bool = False
    ) -> bool:
        """Return whether a limit keeps the pods of a node for more than the next minutes.

        The blast radius ends with time, unless stuck pods use it up. A PodDisruptionBudget allows
        more again when pods that were moved, or were just created, are healthy.

        Args:
            pods: The pods.
            must_go: Whether the node is to be replaced, or its fleet departs.
            overdue: Whether PodDisruptionBudgets no longer apply.
        """
        if self._blast_radius.keeps_for_long(pods):
            return True
        most = allowed_rounds(pods, must_go=must_go)
        if overdue or self._pod_budgets.refusal(pods, most) is None:
            return False
        return self._pod_budgets.refuses_for_long(pods, most, self._coming_back)

    @cached_property
    def _coming_back(self) -> Counter[int]:
        """Count by PodDisruptionBudget the pods that use it up now and will soon not do so.

        Those are pods leaving nodes that we drain, and young pods that are not healthy yet. Older
        unhealthy pods may stay as they are.
        """
        view, pods = self._view, []
        for pod in view.snapshot.cluster.pods:
            if pod.finished or (pod.ready and not pod.deleting):
                continue
            node = None if pod.node_name is None else view.nodes.get(pod.node_name)
            drained = pod.deleting and node is not None and is_draining_by_us(node)
            young = pod.created_at is not None and view.at - pod.created_at < SETTLED_WITHIN
            if drained or (young and not pod.deleting):
                pods.append(pod)
        return self._pod_budgets.covering(pods)

    def take_node(self, key: FleetKey, node: NodeName | None = None) -> None:
        """Count one more node of the fleet as disrupted by this plan; a chosen one only once."""
        self._node_budgets.take(key, node)

    @property
    def chosen_nodes(self) -> frozenset[NodeName]:
        """Return the nodes that rolling updates have chosen and whose drain has not begun yet.

        Nodes that wait for a new node that does not come are left out.
        """
        return self._node_budgets.chosen

    def choose_node(self, key: FleetKey, node: NodeName) -> None:
        """Count one more node as chosen by a rolling update in this plan."""
        self._node_budgets.choose(key, node)

    def begin_drain(
        self, key: FleetKey, node: NodeName, pods: Collection[Pod]
    ) -> tuple[list[Pod], int]:
        """Count a node and its pods as disrupted by this plan.

        Returns:
            The pods that PodDisruptionBudgets allow to evict now, by name, and the number of rounds
            that evicting all of them takes.
        """
        self._node_budgets.take(key, node)
        self._blast_radius.take(pods)
        rounds = self._pod_budgets.rounds(pods)
        return self._pod_budgets.take_now(pods), rounds

    # ---- single pods of nodes that stay ----------------------------------------------------

    def pod_blocker(self, pod: Pod, settings: DeschedulerSettings) -> Blocker | None:
        """Return what keeps one pod on a node that stays; None if it may be descheduled.

        A pod that has ended uses up no budget.
        """
        blocker = self._limit(pod, settings)
        if blocker is not None or pod.finished:
            return blocker
        blocker = self._pods_blocker((pod,), 1)
        if blocker is not None or pod.node_name is None or pod.node_name in self._disrupted:
            return blocker
        return self._node_budgets.blocker(self._fleet_of_node[pod.node_name], "deschedule")

    def take_pod(self, pod: Pod) -> None:
        """Count one pod that is evicted from a node that stays."""
        node = pod.node_name
        assert node is not None
        self._single[node] += 1
        self._single_by_namespace[pod.key.namespace] += 1
        if pod.finished:
            return
        self._pod_budgets.take((pod,))
        self._blast_radius.take((pod,))
        if node not in self._disrupted:
            self._disrupted.add(node)
            self._node_budgets.take(self._fleet_of_node[node])

    def _pods_blocker(self, pods: Collection[Pod], rounds_max: int) -> Blocker | None:
        refused = self._pod_budgets.refusal(pods, rounds_max)
        if refused is not None:
            return Blocker("budget", refused)
        return self._blast_radius.blocker(pods)

    def _limit(self, pod: Pod, settings: DeschedulerSettings) -> Blocker | None:
        assert pod.node_name is not None
        namespace = pod.key.namespace
        counts = (
            ("node", self._single[pod.node_name], settings.per_node_max),
            ("namespace", self._single_by_namespace[namespace], settings.per_namespace_max),
            ("cycle", self._single.total(), settings.per_cycle_max),
        )
        for what, count, most in counts:
            if most is not None and count >= most:
                pods = counted_noun(most, "pod")
                return Blocker("eviction-limit", f"max_evictions_per_{what} allows {pods}")
        return None
