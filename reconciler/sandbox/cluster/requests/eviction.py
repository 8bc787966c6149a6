"""pods/eviction: applies policy/v1 budgets, with the API server's answers.

Source: pkg/registry/core/pod/storage/eviction.go of Kubernetes 1.36.
"""

from typing import Any

from reconciler.sandbox.cluster.clock import format_time
from reconciler.sandbox.cluster.objects.api import Api
from reconciler.sandbox.cluster.objects.conditions import is_true, set_condition
from reconciler.sandbox.cluster.objects.resources import BUDGETS, PODS
from reconciler.sandbox.cluster.objects.selectors import labels_of, selector_of
from reconciler.sandbox.cluster.objects.status import (
    ApiError,
    JsonObject,
    bad_request,
    forbidden,
    success,
    too_many_requests,
)
from reconciler.sandbox.cluster.objects.store import Entry, Key

_REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."
_DISRUPTED_PODS_MAX = 2000
_RETRY_SECONDS = 10


def evict(api: Api, key: Key, eviction: JsonObject, *, dry_run: bool) -> JsonObject:
    """Delete a pod if its budget allows it; `eviction` is a policy/v1 Eviction.

    Returns:
        A Status of success.

    Raises:
        ApiError: 429 when the budget has nothing left or lags behind its spec, 500 when more
            than one budget covers the pod, 404, 409 for preconditions.
    """
    if (eviction.get("metadata") or {}).get("name", key[1]) != key[1]:
        raise bad_request("name in URL does not match name in Eviction object")
    options: dict[str, Any] = eviction.get("deleteOptions") or {}
    simulate = dry_run or bool(options.get("dryRun"))
    with api.store.transaction():
        pod = api.store.get(PODS, key)
        if not _ignores_budgets(pod):
            _ask_budgets(api, pod, simulate=simulate)
            if not simulate:
                _mark(api, pod)
        api.delete(PODS, key, options, dry_run=simulate)
    return success()


def _ignores_budgets(pod: Entry) -> bool:
    """Return whether the pod's end disrupts nothing any more, or nothing yet."""
    done = pod.body["status"].get("phase") in {"Succeeded", "Failed", "Pending"}
    return done or "deletionTimestamp" in pod.body["metadata"]


def budgets_of(api: Api, pod: Entry) -> list[Entry]:
    """Return the budgets that cover a pod; an empty selector covers nothing."""
    budgets, _ = api.store.objects(BUDGETS, pod.key[0])
    selectors = [(entry, selector_of(entry.body["spec"].get("selector"))) for entry in budgets]
    labels = labels_of(pod.body)
    return [entry for entry, selector in selectors if selector and selector.matches(labels)]


def _ask_budgets(api: Api, pod: Entry, *, simulate: bool) -> None:
    budgets = budgets_of(api, pod)
    if len(budgets) > 1:
        raise ApiError(
            500, "", "This pod has more than one PodDisruptionBudget, which the eviction "
            "subresource does not support.",
        )  # fmt: skip
    if budgets and not _unhealthy_may_go(pod, budgets[0].body):
        _decrement(api, pod, budgets[0], simulate=simulate)


def _unhealthy_may_go(pod: Entry, budget: JsonObject) -> bool:
    """Return whether the budget's policy lets an unready pod be evicted without counting."""
    if is_true(pod.body, "Ready"):
        return False
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    desired = status.get("desiredHealthy", 0)
    return bool(desired > 0 and status.get("currentHealthy", 0) >= desired)


def _decrement(api: Api, pod: Entry, budget: Entry, *, simulate: bool) -> None:
    status, name = budget.body.get("status") or {}, budget.key[1]
    if status.get("observedGeneration", 0) < budget.body["metadata"]["generation"]:
        cause = f"The disruption budget {name} is still being processed by the server."
        raise too_many_requests(_REFUSED, cause, _RETRY_SECONDS)
    allowed = status.get("disruptionsAllowed", 0)
    if allowed < 0:
        raise forbidden(BUDGETS, name, "pdb disruptions allowed is negative")
    if len(status.get("disruptedPods") or ()) > _DISRUPTED_PODS_MAX:
        raise forbidden(
            BUDGETS, name, "DisruptedPods map too big - too many evictions not confirmed by PDB "
            "controller",
        )  # fmt: skip
    if allowed == 0:
        needs, has = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
        cause = f"The disruption budget {name} needs {needs} healthy pods and has {has} currently"
        raise too_many_requests(_REFUSED, cause)
    if not simulate:
        at = format_time(api.now())
        api.patch(
            BUDGETS, budget.key, lambda body: _spend(body, pod.key[1], at), subresource="status"
        )


def _spend(body: JsonObject, pod: str, at: str) -> None:
    status = body["status"]
    status["disruptionsAllowed"] -= 1
    status["disruptedPods"] = {**(status.get("disruptedPods") or {}), pod: at}
    if status["disruptionsAllowed"] == 0:
        condition = {"type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods"}
        set_condition(status, {**condition, "message": ""}, at)


def _mark(api: Api, pod: Entry) -> None:
    """Note in the pod why it ends."""
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    at = format_time(api.now())

    def change(body: JsonObject) -> None:
        set_condition(body["status"], condition, at)

    api.patch(PODS, pod.key, change, subresource="status")
