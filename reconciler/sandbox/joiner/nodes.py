"""The cluster's side of joining: Node objects through the official client."""

import json
from pathlib import Path
from typing import Any

from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from reconciler.model.errors import InputError, Unavailable
from reconciler.model.ids import instance_id_of
from reconciler.sandbox.cluster.settings import KUBELET, KUBELET_STOPPED
from reconciler.sandbox.control_api import CLIENT

_TIMEOUT_SECONDS = 10.0
_INVALID = 422


class Nodes:
    """Registers, silences and removes nodes.

    Every method raises `Unavailable` when the API server does not answer, or refuses for now.
    """

    def __init__(self, kubeconfig: Path) -> None:
        make_client: Any = config.new_client_from_config
        api = make_client(config_file=str(kubeconfig))
        api.user_agent = CLIENT
        self._api = api
        self._core = client.CoreV1Api(api)

    def close(self) -> None:
        """Give the connections back."""
        self._api.rest_client.pool_manager.clear()

    def by_instance(self) -> dict[str, str]:
        """Return the names of the existing nodes, by EC2 instance id."""
        body = self._call(self._core.list_node, _preload_content=False)
        items: list[dict[str, Any]] = json.loads(body.data)["items"]
        found = {
            instance_id_of(item["spec"].get("providerID", "")): item["metadata"]["name"]
            for item in items
        }
        return {str(instance): name for instance, name in found.items() if instance}

    def register(self, node: dict[str, Any]) -> None:
        """Create the Node object; one that is there already is kept.

        Raises:
            InputError: The API server finds it invalid, as for a label that is none.
        """
        self._call(self._core.create_node, node, ignored=409)

    def silence(self, name: str) -> None:
        """Stop the kubelet of a node, as its instance ends."""
        patch = {"metadata": {"annotations": {KUBELET: KUBELET_STOPPED}}}
        self._call(self._core.patch_node, name, patch, ignored=404)

    def remove(self, name: str) -> None:
        """Delete the Node object, as the cloud controller does when its instance is gone."""
        self._call(self._core.delete_node, name, ignored=404)

    @staticmethod
    def _call(operation: Any, *arguments: Any, ignored: int = 0, **options: Any) -> Any:
        try:
            return operation(*arguments, _request_timeout=_TIMEOUT_SECONDS, **options)
        except ApiException as error:
            if error.status == ignored:
                return None
            if error.status == _INVALID:
                raise InputError("node", _said(error)) from error
            raise Unavailable("sandbox cluster", f"{error.status} {error.reason}") from error
        except HTTPError as error:
            raise Unavailable("sandbox cluster", str(error)) from error


def _said(error: ApiException) -> str:
    """Return what the API server says is wrong with an object."""
    try:
        return str(json.loads(error.body or "")["message"])
    except (ValueError, KeyError, TypeError):
        return str(error.reason)
