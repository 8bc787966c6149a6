"""Why a pod may not be descheduled: an ordered list of checks for the pods of one profile."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np

from reconciler.model.cluster import Pod
from reconciler.model.frozen import NO_LABELS
from reconciler.model.ids import FleetKey, NodeName
from reconciler.model.text import duration
from reconciler.planner.descheduler_settings import DeschedulerSettings, EvictorSettings
from reconciler.planner.disruption.blocker import Blocker
from reconciler.planner.disruption.blockers.settling import bound_at
from reconciler.planner.disruption.descheduler.facts import Proposal
from reconciler.planner.disruption.disruption_context import DisruptionContext
from reconciler.planner.disruption.drains.actions import terms_of
from reconciler.planner.rules import (
    Ruling,
    Subject,
    Terms,
    Verdict,
    forbidding,
    judge_of,
    rule_on_failed,
)
from reconciler.planner.rules.annotations import protected_until

_Controller = tuple[str, str, str, str]
"""Namespace, kind, name and UID."""


class PodBlockers:
    """Checks a pod's annotations, node, owner and age, and the arguments of the DefaultEvictor.

    Args:
        context: The limits of this plan.
        settings: The descheduler's settings.
        evictor: The arguments of the profile's DefaultEvictor.
    """

    def __init__(
        self, context: DisruptionContext, settings: DeschedulerSettings, evictor: EvictorSettings
    ) -> None:
        self._context = context
        self._settings = settings
        self._evictor = evictor
        view = context.view
        self._namespaces = {
            namespace.name: namespace.labels for namespace in view.snapshot.cluster.namespaces
        }
        chosen = evictor.destinations
        self.destinations = np.array(
            [chosen is None or chosen.matches(node.labels) for node in view.nodes.values()],
            dtype=np.bool_,
        )
        """Rows of nodes that pods may be expected on."""
        self._terms_of: dict[FleetKey, Terms] = {}
        """By fleet, as thousands of pods of one fleet are asked about."""
        self._replicas: Counter[_Controller] = Counter()
        if evictor.replicas_min:
            self._replicas.update(
                _controller(pod)
                for pod in view.snapshot.cluster.pods
                if pod.owner is not None and not pod.finished
            )

    def first(self, proposal: Proposal) -> Blocker | None:
        """Return the first reason why the pod stays; None if nothing about it keeps it."""
        checks: tuple[Callable[[Pod], Blocker | None], ...] = (
            self._rules,
            self._node,
            self._selected,
            self._priority,
            self._claims,
            self._replicas_min,
            self._too_young,
        )
        return next((blocker for ask in checks if (blocker := ask(proposal.pod)) is not None), None)

    def stays_for_good(self, pod: Pod) -> bool:
        """Return whether a running pod stays on its node until a person changes something.

        A started Job's pod does not, as it ends by itself.
        """
        ruling = self._ruling(pod, self._terms_on(pod.node_name))
        forbidden = ruling.verdict is Verdict.BLOCK and ruling.code != "started-job"
        if forbidden and ruling.until is None:
            return True
        asks = (self._selected, self._priority, self._claims)
        return any(ask(pod) is not None for ask in asks)

    def _rules(self, pod: Pod) -> Blocker | None:
        """Return a blocker if scale-in would not move the pod either."""
        ruling = self._ruling(pod, self._terms_on(pod.node_name))
        if ruling.verdict is Verdict.OK:
            return None
        return Blocker(ruling.code, ruling.reason or f"{ruling.code} pods are left alone")

    def _ruling(self, pod: Pod, terms: Terms) -> Ruling:
        if pod.finished:
            bare = pod.phase == "Failed" and self._evictor.failed_bare_pods
            subject = Subject(pod=pod, protected_until=protected_until(pod, self._context.view.at))
            return rule_on_failed(subject, replace(terms, move_bare_pods=bare))
        coverage = self._context.builder.budgets.coverage
        return judge_of(terms, coverage, self._context.view.at).ruling(pod)

    def _terms_on(self, node: NodeName | None) -> Terms:
        assert node is not None
        fleet = self._context.view.inventory.fleet_of_node[node]
        if fleet not in self._terms_of:
            self._terms_of[fleet] = self._terms(fleet)
        return self._terms_of[fleet]

    def _terms(self, fleet: FleetKey) -> Terms:
        terms = terms_of(self._context.view.statuses[fleet].settings.scale_in)
        return replace(
            terms,
            move_local_storage=terms.move_local_storage or self._evictor.local_storage,
            critical_pods_stay=not self._evictor.system_critical,
        )

    def _node(self, pod: Pod) -> Blocker | None:
        """Return a blocker if the pod's node is protected."""
        assert pod.node_name is not None
        found = forbidding(self._context.view.nodes[pod.node_name].annotations)
        return Blocker("do-not-disrupt", f"its node is annotated {found}") if found else None

    def _selected(self, pod: Pod) -> Blocker | None:
        evictor = self._evictor
        if evictor.selector is not None and not evictor.selector.matches(pod.labels):
            return Blocker("not-selected", "the evictor's labelSelector does not match it")
        labels = self._namespaces.get(pod.key.namespace, NO_LABELS)
        of_namespace = evictor.namespace_selector
        if of_namespace is not None and not of_namespace.matches(labels):
            return Blocker("not-selected", "the evictor's namespaceLabelSelector leaves it out")
        return None

    def _priority(self, pod: Pod) -> Blocker | None:
        below = self._evictor.priority_below
        if below is None or pod.spec.priority < below:
            return None
        why = f"its priority is {pod.spec.priority}, the threshold {below}"
        return Blocker("priority", why)

    def _claims(self, pod: Pod) -> Blocker | None:
        if self._evictor.claims_stay and pod.claims:
            return Blocker("claims", "it has a PersistentVolumeClaim (ignorePvcPods)")
        budgets = self._context.builder.budgets.coverage
        if self._evictor.without_budget_stays and not budgets.of(pod):
            return Blocker("no-budget", "no disruption budget covers it (ignorePodsWithoutPDB)")
        return None

    def _replicas_min(self, pod: Pod) -> Blocker | None:
        """Return a blocker if its controller has too few pods; one that has ended is not missed."""
        least = self._evictor.replicas_min
        if not least or pod.finished or pod.owner is None:
            return None
        count = self._replicas[_controller(pod)]
        if count >= least:
            return None
        return Blocker("min-replicas", f"its controller has {count} pods, minReplicas is {least}")

    def _too_young(self, pod: Pod) -> Blocker | None:
        """Return a blocker for a new replica, so that replicas are not evicted again and again.

        `minPodAge` counts from the start, as upstream. Everything else counts from when the pod was
        bound to the node: it may have waited hours for it.
        """
        at = self._context.view.at
        started = None if pod.started_at is None else min(pod.started_at, at)
        left = _left(started, self._evictor.age_min_seconds, at)
        if not pod.finished:
            left = max(left, _left(bound_at(pod, at), self._settled_after(pod), at))
        if left <= 0:
            return None
        return Blocker("young", f"it is too young; {duration(timedelta(seconds=left))} to go")

    def _settled_after(self, pod: Pod) -> float:
        assert pod.node_name is not None
        view = self._context.view
        status = view.statuses[view.inventory.fleet_of_node[pod.node_name]]
        return max(self._settings.interval_seconds, status.settings.scale_in.settle_seconds)


def _left(since: datetime | None, seconds: float, at: datetime) -> float:
    """Return how many of the seconds have not passed; all of them if it has not begun."""
    return seconds if since is None else seconds - max(0.0, (at - since).total_seconds())


def _controller(pod: Pod) -> _Controller:
    assert pod.owner is not None
    return pod.key.namespace, pod.owner.kind, pod.owner.name, pod.owner.uid
