"""The Eviction API: what budgets allow, and how a refusal looks on the wire."""

from typing import Any

import pytest

from reconciler.sandbox.cluster.objects.resources import BUDGETS
from reconciler.sandbox.cluster.objects.status import ApiError
from reconciler.sandbox.cluster.requests.eviction import evict as evict_inside
from tests.sandbox.cluster.kube import Answer, Kube, available, is_ready, pod_body, workload

TERMINATION = "sandbox.fleet-reconciler.io/termination"


def evict(kube: Kube, pod: str, query: str = "", **options: Any) -> Answer:
    """POST an Eviction."""
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod, "namespace": "default"},
        "deleteOptions": options,
    }
    return kube.ask("POST", f"/api/v1/namespaces/default/pods/{pod}/eviction{query}", body)


def run_deployment(kube: Kube, name: str, replicas: int) -> list[str]:
    """Names of the pods of a Deployment that is available."""
    kube.apps.create_namespaced_deployment("default", workload(name, replicas))
    available(kube, name, replicas)
    listed = kube.core.list_namespaced_pod("default", label_selector=f"app={name}")
    return [pod.metadata.name for pod in listed.items]


def make_budget(kube: Kube, name: str, allowed: int, app: str = "web", **spec: Any) -> Any:
    """A budget over pods of one app, once its status allows so many disruptions."""
    body = {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": {"app": app}}, **spec}}
    kube.policy.create_namespaced_pod_disruption_budget("default", body)
    return allows(kube, name, allowed)


def allows(kube: Kube, name: str, allowed: int) -> Any:
    """Wait until a budget allows so many disruptions."""
    return kube.until(
        kube.policy.list_namespaced_pod_disruption_budget,
        lambda b: (
            b.metadata.name == name
            and b.status is not None
            and b.status.observed_generation == b.metadata.generation
            and b.status.disruptions_allowed == allowed
        ),
        "default",
    )


def test_second_eviction_under_budget_is_refused_with_429(cluster: Kube) -> None:
    """A drain would take a service below what its owner asked for."""
    pods = run_deployment(cluster, "web", 3)
    cluster.core.patch_node("a", {"spec": {"unschedulable": True}})
    cluster.core.patch_node("b", {"spec": {"unschedulable": True}})
    make_budget(cluster, "web", 1, minAvailable=2)
    first = evict(cluster, pods[0])
    assert (first.code, first.body["status"]) == (201, "Success")
    second = evict(cluster, pods[1])
    assert (second.code, second.body["reason"]) == (429, "TooManyRequests")
    assert second.body["details"]["causes"][0]["reason"] == "DisruptionBudget"
    assert "needs 2 healthy pods and has" in second.body["details"]["causes"][0]["message"]


def test_budget_allows_again_when_replacement_is_ready(cluster: Kube) -> None:
    """A drain would wait for ever, or not at all."""
    pods = run_deployment(cluster, "web", 3)
    make_budget(cluster, "web", 1, maxUnavailable=1)
    assert evict(cluster, pods[0]).code == 201
    cluster.until_gone(cluster.core.list_namespaced_pod, pods[0], "default")
    budget = allows(cluster, "web", 1)
    assert (budget.status.expected_pods, budget.status.desired_healthy) == (3, 2)
    assert evict(cluster, pods[1]).code == 201


def test_percentage_budget_counts_replicas_of_the_deployment(cluster: Kube) -> None:
    """Percentages round up: 50 % of 3 keeps 2."""
    run_deployment(cluster, "web", 3)
    budget = make_budget(cluster, "web", 1, minAvailable="50%")
    assert (budget.status.desired_healthy, budget.status.current_healthy) == (2, 3)


def test_pod_under_two_budgets_is_refused_with_500(cluster: Kube) -> None:
    """The real server does so; a client that retries it as a passing error never ends."""
    pods = run_deployment(cluster, "web", 2)
    make_budget(cluster, "one", 2, minAvailable=0)
    make_budget(cluster, "two", 2, minAvailable=0)
    answer = evict(cluster, pods[0])
    assert answer.code == 500
    assert "more than one PodDisruptionBudget" in answer.body["message"]


def test_budget_behind_its_spec_asks_to_retry(cluster: Kube) -> None:
    """An eviction must not use up a budget that its owner has just tightened."""
    pods = run_deployment(cluster, "web", 2)
    make_budget(cluster, "web", 2, minAvailable=0)
    api = cluster.server.api
    with api.store.transaction():  # no controller gets in between
        api.patch(BUDGETS, ("default", "web"), _forget_generation, subresource="status")
        with pytest.raises(ApiError) as caught:
            evict_inside(api, ("default", pods[0]), {}, dry_run=False)
    assert (caught.value.code, caught.value.retry_after_seconds) == (429, 10)


def _forget_generation(body: dict[str, Any]) -> None:
    body["status"]["observedGeneration"] = 0


def test_eviction_rehearsed_takes_nothing(cluster: Kube) -> None:
    """A dry run would use the budget up."""
    pods = run_deployment(cluster, "web", 2)
    make_budget(cluster, "web", 1, minAvailable=1)
    for _ in range(3):
        assert evict(cluster, pods[0], "?dryRun=All").code == 201
    assert not cluster.core.read_namespaced_pod(pods[0], "default").metadata.deletion_timestamp
    assert allows(cluster, "web", 1).status.disrupted_pods in (None, {})


def test_evicted_pod_is_marked_and_keeps_its_grace(cluster: Kube) -> None:
    """Destinations are counted free too early when a pod seems gone at once."""
    body = pod_body("slow", terminationGracePeriodSeconds=60)
    body["metadata"]["annotations"] = {TERMINATION: "60"}
    cluster.core.create_namespaced_pod("default", body)
    cluster.until(cluster.core.list_namespaced_pod, is_ready, "default")
    assert evict(cluster, "slow").code == 201
    pod = cluster.core.read_namespaced_pod("slow", "default")
    assert pod.metadata.deletion_grace_period_seconds == 60
    reasons = {c.type: c.reason for c in pod.status.conditions}
    assert reasons["DisruptionTarget"] == "EvictionByEvictionAPI"
    assert evict(cluster, "slow").code == 201
    cluster.core.delete_namespaced_pod("slow", "default", grace_period_seconds=0)
    cluster.until_gone(cluster.core.list_namespaced_pod, "slow", "default")


def test_eviction_of_missing_pod_is_not_found(cluster: Kube) -> None:
    """A pod that went by itself is no failure of a drain."""
    assert evict(cluster, "none").code == 404


def test_pending_pod_is_evicted_past_an_exhausted_budget(kube: Kube) -> None:
    """A pod that never ran disrupts nothing."""
    kube.core.create_namespaced_pod("default", pod_body("web"))
    make_budget(kube, "web", 0, minAvailable=1)
    assert evict(kube, "web").code == 201
    kube.until_gone(kube.core.list_namespaced_pod, "web", "default")
