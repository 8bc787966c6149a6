"""PodDisruptionBudget status, which the eviction subresource uses.

Source: pkg/controller/disruption of Kubernetes 1.36.
"""

from collections.abc import Hashable, Iterable
from datetime import timedelta
from typing import cast

from reconciler.model.int_or_string import scaled_value
from reconciler.sandbox.cluster.clock import format_time, parse_time
from reconciler.sandbox.cluster.objects.api import Api
from reconciler.sandbox.cluster.objects.conditions import set_condition
from reconciler.sandbox.cluster.objects.resources import (
    BUDGETS,
    CATALOGUE,
    DEPLOYMENTS,
    PODS,
    REPLICA_SETS,
    STATEFUL_SETS,
)
from reconciler.sandbox.cluster.objects.selectors import labels_of, selector_of
from reconciler.sandbox.cluster.objects.status import JsonObject
from reconciler.sandbox.cluster.objects.store import Change, Entry, Key
from reconciler.sandbox.cluster.owned import (
    controller_of,
    is_going,
    is_ready,
)

_DELETION_TIMEOUT_SECONDS = 120
"""How long an approved eviction counts without its pod being deleted."""
_SCALED = {DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS}


class BudgetController:
    """Keeps expectedPods, currentHealthy, desiredHealthy and disruptionsAllowed."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def observe(self, change: Change) -> Iterable[Key]:
        """Return the budget itself, and those that the pod or its owner's scale concerns."""
        entry = change.entry
        if entry.resource is BUDGETS:
            return [entry.key]
        if entry.resource in _SCALED:
            return [b.key for b in self._api.store.objects(BUDGETS, entry.key[0])[0]]
        if entry.resource is PODS:
            versions = [entry] if change.before is None else [entry, change.before]
            budgets = self._api.store.objects(BUDGETS, entry.key[0])[0]
            return [b.key for b in budgets if any(_covers(b, pod) for pod in versions)]
        return []

    def reconcile(self, key: Hashable) -> float | None:
        """Recount one budget."""
        with self._api.store.transaction():
            budget = self._api.store.find(BUDGETS, cast("Key", key))
            if budget is None or is_going(budget):
                return None
            pods = [
                p for p in self._api.store.objects(PODS, budget.key[0])[0] if _covers(budget, p)
            ]
            expected, desired = self._expected(budget, pods)
            disrupted, again = self._disrupted(budget, pods)
            healthy = sum(
                is_ready(p) and not is_going(p) and p.key[1] not in disrupted for p in pods
            )
            allowed = max(0, healthy - desired) if expected > 0 else 0
            self._write(
                budget,
                {
                    "currentHealthy": healthy,
                    "desiredHealthy": desired,
                    "expectedPods": expected,
                    "disruptionsAllowed": allowed,
                },
                disrupted,
            )
            return again

    def _expected(self, budget: Entry, pods: list[Entry]) -> tuple[int, int]:
        """Return how many pods should exist, and how many of them must be healthy."""
        spec = budget.body["spec"]
        most, fewest = spec.get("maxUnavailable"), spec.get("minAvailable")
        if most is not None:
            expected = self._scale_of(pods)
            return expected, max(0, expected - scaled_value(most, expected, up=True))
        if isinstance(fewest, int):
            return len(pods), fewest
        if fewest is not None:
            expected = self._scale_of(pods)
            return expected, scaled_value(fewest, expected, up=True)
        return 0, 0

    def _scale_of(self, pods: list[Entry]) -> int:
        """Return the sum of the replicas of the pods' controllers, each counted once."""
        scales: dict[str, int] = {}
        for pod in pods:
            owner = self._top_owner(pod)
            if owner is not None:
                scales[owner.uid] = int(owner.body["spec"].get("replicas", 0))
        return sum(scales.values())

    def _top_owner(self, entry: Entry) -> Entry | None:
        """Return the Deployment, else the ReplicaSet or StatefulSet, that a pod belongs to."""
        reference = controller_of(entry)
        if reference is None:
            return None
        resource = CATALOGUE.by_kind.get((reference["apiVersion"], reference["kind"]))
        if resource not in _SCALED:
            return None
        owner = self._api.store.find(resource, (entry.key[0], reference["name"]))
        if owner is None or owner.uid != reference["uid"]:
            return None
        return self._top_owner(owner) or owner

    def _disrupted(self, budget: Entry, pods: list[Entry]) -> tuple[dict[str, str], float | None]:
        """Return approved evictions of pods not yet deleted; and the seconds until one lapses."""
        known = {pod.key[1]: pod for pod in pods}
        noted = (budget.body.get("status") or {}).get("disruptedPods") or {}
        kept: dict[str, str] = {}
        delays: list[float] = []
        for name, at in noted.items():
            if name not in known or is_going(known[name]):
                continue
            end = parse_time(at) + timedelta(seconds=_DELETION_TIMEOUT_SECONDS)
            left = (end - self._api.now()).total_seconds()
            if left > 0:
                kept[name] = at
                delays.append(left)
        return kept, min(delays, default=None)

    def _write(self, budget: Entry, counts: dict[str, int], disrupted: dict[str, str]) -> None:
        at = format_time(self._api.now())
        allowed = counts["disruptionsAllowed"] > 0
        condition = {
            "type": "DisruptionAllowed",
            "status": str(allowed),
            "reason": "SufficientPods" if allowed else "InsufficientPods",
            "message": "",
            "observedGeneration": budget.body["metadata"]["generation"],
        }

        def change(body: JsonObject) -> None:
            status = body.setdefault("status", {})
            status.update(counts, observedGeneration=body["metadata"]["generation"])
            status.pop("disruptedPods", None)
            if disrupted:
                status["disruptedPods"] = disrupted
            set_condition(status, condition, at)

        self._api.mutate(BUDGETS, budget.key, change, subresource="status")


def _covers(budget: Entry, pod: Entry) -> bool:
    selector = selector_of(budget.body["spec"].get("selector"))
    return selector is not None and selector.matches(labels_of(pod.body))
