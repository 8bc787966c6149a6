"""Creates and deletes objects through the official client."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kubernetes import client, config, utils
from kubernetes.client.exceptions import ApiException

from reconciler.model.errors import ToolError


def _api(kubeconfig: Path) -> Any:
    make: Any = config.new_client_from_config  # the client is untyped here
    return make(str(kubeconfig))


def apply_objects(kubeconfig: Path, objects: Iterable[Mapping[str, Any]]) -> None:
    """Create the objects, and their namespaces when they are missing.

    Raises:
        ToolError: The API server refused one.
    """
    api = _api(kubeconfig)
    known: set[str] = set()
    try:
        for each in objects:
            namespace = each["metadata"].get("namespace", "default")
            if namespace not in known:
                known.add(namespace)
                _create(
                    api, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
                )
            _create(api, each)
    finally:
        api.close()


def _create(api: Any, each: Mapping[str, Any]) -> None:
    try:
        create: Any = utils.create_from_dict  # the client is untyped here
        create(api, dict(each))
    except utils.FailToCreateError as error:
        if any(e.status != 409 for e in error.api_exceptions):
            name = each["metadata"]["name"]
            raise ToolError(f"{each['kind']} {name}", str(error).strip()) from error


def delete_objects(kubeconfig: Path, deployments: Iterable[Mapping[str, Any]]) -> None:
    """Delete Deployments with their pods."""
    api = _api(kubeconfig)
    apps = client.AppsV1Api(api)
    try:
        for deployment in deployments:
            meta = deployment["metadata"]
            apps.delete_namespaced_deployment(
                meta["name"], meta["namespace"], propagation_policy="Background"
            )
    except ApiException as error:
        raise ToolError("deployments", f"could not be deleted: {error.reason}") from error
    finally:
        api.close()
