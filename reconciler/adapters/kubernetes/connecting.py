"""Connects to the API server that a kubeconfig, or the pod that this runs in, names."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml
from kubernetes import client, config
from kubernetes.config.config_exception import ConfigException

from reconciler.adapters.kubernetes.transport import CONNECTIONS_MAX, READ_SECONDS, Transport
from reconciler.model.errors import InputError, why_unreadable

_UNUSABLE = (
    ConfigException,
    yaml.YAMLError,
    OSError,
    ValueError,
    TypeError,
    AttributeError,
    LookupError,
    RecursionError,
)


def connect(
    kubeconfig: str | None = None,
    context: str | None = None,
    *,
    read_seconds: float = READ_SECONDS,
    fence: Callable[[], bool] | None = None,
) -> Transport:
    """Connect with the file or $KUBECONFIG; else as a pod does, else with ~/.kube/config.

    Args:
        kubeconfig: The file.
        context: Its context; default: the current one.
        read_seconds: The longest pause of the server within an answer.
        fence: Called right before every request that changes something; False: it is not sent.

    Raises:
        InputError: There is no usable configuration.
    """
    configuration = client.Configuration()
    try:
        _configure(configuration, kubeconfig, context)
    except _UNUSABLE as error:
        raise _unusable(kubeconfig, error) from error
    configuration.retries = False
    configuration.connection_pool_maxsize = CONNECTIONS_MAX

    def renew() -> None:
        """Read the credentials again: whoever rotates a token writes it into the same file."""
        now = client.Configuration()
        with suppress(*_UNUSABLE):  # it is being written, or gone: the old ones stay
            _configure(now, kubeconfig, context)
            configuration.api_key = now.api_key
            configuration.refresh_api_key_hook = now.refresh_api_key_hook

    return Transport(
        client.ApiClient(configuration), read_seconds=read_seconds, fence=fence, renew=renew
    )


def _unusable(kubeconfig: str | None, error: Exception) -> InputError:
    """Return the error for an unusable kubeconfig; for a missing one, that it is missing."""
    hint = "name one with --kubeconfig or KUBECONFIG, or run in the cluster"
    variable = os.environ.get("KUBECONFIG", "")  # noqa: TID251 - kubectl's own variable
    files = [kubeconfig] if kubeconfig else [each for each in variable.split(os.pathsep) if each]
    where = os.pathsep.join(files) or "~/.kube/config"
    problems = [problem for problem in map(_not_opened, files or [where]) if problem]
    if len(problems) == max(1, len(files)):
        return InputError(where, problems[0], hint)
    # What the client's loader raises for a broken file depends on where it is broken.
    text = " ".join(str(error).split()) or type(error).__name__
    return InputError(where, f"is not a usable kubeconfig: {text}"[:300], hint)


def _not_opened(file: str) -> str | None:
    """Return why a file cannot be opened, or that it is empty; None when it has content."""
    try:
        with Path(file).expanduser().open("rb") as stream:
            return None if stream.read(1) else "is empty"
    except OSError as error:
        return why_unreadable(error)


def _configure(
    configuration: client.Configuration, kubeconfig: str | None, context: str | None
) -> None:
    load_in_cluster: Any = config.load_incluster_config
    load_file: Any = config.load_kube_config
    # Whoever sets KUBECONFIG means it, even in a shell inside a pod.
    kubeconfig = kubeconfig or os.environ.get("KUBECONFIG")  # noqa: TID251 - kubectl's own variable
    if kubeconfig is None and context is None:
        try:
            load_in_cluster(client_configuration=configuration)
        except ConfigException:
            pass
        else:
            return
    load_file(kubeconfig, context, client_configuration=configuration)
