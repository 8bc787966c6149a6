"""Services in the cluster of a team."""

from typing import Any

from kubernetes import client

from tests.sandbox.gitops.team import Team


def deploy(
    team: Team, name: str, selector: dict[str, str], *, cpu: str, memory: str, replicas: int = 1
) -> None:
    """A Deployment."""
    labels = {"app": name}
    requests = {"cpu": cpu, "memory": memory}
    pod = {
        "nodeSelector": selector,
        "containers": [{"name": "main", "image": "web:1", "resources": {"requests": requests}}],
    }
    body = {
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }
    apps(team).create_namespaced_deployment("default", body)


def job(team: Team, name: str, selector: dict[str, str], *, seconds: int) -> None:
    """A pod that nothing would make again, and that ends by itself."""
    body = {
        "metadata": {
            "name": name,
            "annotations": {"sandbox.fleet-reconciler.io/duration": str(seconds)},
        },
        "spec": {
            "containers": [{"name": "main", "image": "batch:1"}],
            "restartPolicy": "Never",
            "nodeSelector": selector,
        },
    }
    team.world.core.create_namespaced_pod("default", body)


def limit_disruptions(team: Team, name: str, unavailable: int) -> None:
    """A PodDisruptionBudget for the Deployment."""
    make: Any = client.PolicyV1Api
    body = {
        "metadata": {"name": name},
        "spec": {"maxUnavailable": unavailable, "selector": {"matchLabels": {"app": name}}},
    }
    make(team.world.api).create_namespaced_pod_disruption_budget("default", body)


def apps(team: Team) -> Any:
    """The API of Deployments."""
    make: Any = client.AppsV1Api
    return make(team.world.api)
