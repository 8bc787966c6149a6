"""Connects to the API server that a kubeconfig, or the pod that this runs in, names."""

import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import yaml
from kubernetes import client, config
from kubernetes.config.config_exception import ConfigException
from typing_extensions import override

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
_FAILURE_MAX: Final = 300
"""The most characters that are kept of a credential plugin's output."""


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
        InputError: There is no usable configuration, or its credential plugin fails.
    """
    configuration = client.Configuration()
    try:
        failure = _configure(configuration, kubeconfig, context)
    except _UNUSABLE as error:
        raise _unusable(kubeconfig, error) from error
    if failure:
        hint = "log in again, or run the plugin by hand"
        raise InputError(_named(kubeconfig), f"its credential plugin failed: {failure}", hint)
    configuration.retries = False
    configuration.connection_pool_maxsize = CONNECTIONS_MAX

    def renew() -> str:
        """Read the credentials again: a rotated token is written into the same file."""
        now = client.Configuration()
        with suppress(*_UNUSABLE):  # it is being written, or gone: the old ones stay
            failure = _configure(now, kubeconfig, context)
            if failure:
                return f"the credential plugin failed: {failure}"
            configuration.api_key = now.api_key
            configuration.refresh_api_key_hook = now.refresh_api_key_hook
        return ""

    return Transport(
        client.ApiClient(configuration), read_seconds=read_seconds, fence=fence, renew=renew
    )


def _unusable(kubeconfig: str | None, error: Exception) -> InputError:
    """Return the error for an unusable kubeconfig; for a missing one, that it is missing."""
    hint = "name one with --kubeconfig or KUBECONFIG, or run in the cluster"
    where = _named(kubeconfig)
    files = [kubeconfig] if kubeconfig else where.split(os.pathsep)
    problems = [problem for problem in map(_not_opened, files) if problem]
    if len(problems) == len(files):
        return InputError(where, problems[0], hint)
    # What the client's loader raises for an invalid file depends on where it is invalid.
    shapeless = isinstance(error, TypeError | AttributeError | LookupError | RecursionError)
    text = "its content is something else" if shapeless else " ".join(str(error).split())
    return InputError(
        where, f"is not a usable kubeconfig: {text or type(error).__name__}"[:300], hint
    )


def _named(kubeconfig: str | None) -> str:
    """Return the file that is used, or the files of $KUBECONFIG, for messages."""
    variable = os.environ.get("KUBECONFIG", "")  # noqa: TID251 - kubectl's own variable
    several = os.pathsep.join(each for each in variable.split(os.pathsep) if each)
    return kubeconfig or several or "~/.kube/config"


def _not_opened(file: str) -> str | None:
    """Return why a file cannot be opened, or that it is empty; None when it has content."""
    try:
        with Path(file).expanduser().open("rb") as stream:
            return None if stream.read(1) else "is empty"
    except OSError as error:
        return why_unreadable(error)


class _PluginFailures(logging.Filter):
    """Takes what the client's loader logs of a credential plugin that failed, in one thread.

    The loader reports it nowhere else, and continues without credentials.
    """

    def __init__(self) -> None:
        super().__init__()
        self._thread = threading.get_ident()
        self.text = ""

    @override
    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the record is for others."""
        if record.thread != self._thread or record.funcName != "_load_from_exec_plugin":
            return True
        self.text = " ".join(record.getMessage().split()).removeprefix("exec: ")
        return False


def _configure(
    configuration: client.Configuration, kubeconfig: str | None, context: str | None
) -> str:
    """Read configuration and credentials; return why the credential plugin failed, or nothing."""
    with _plugin_failures() as failures:
        _load(configuration, kubeconfig, context)
    _trim_token(configuration)
    _refresh_in_silence(configuration)
    return failures.text[:_FAILURE_MAX]


def _trim_token(configuration: Any) -> None:
    """Remove white space around a token, as kubectl does: a file with one often ends a line."""
    keys = configuration.api_key.items()
    configuration.api_key = {name: key.strip() for name, key in keys}


def _refresh_in_silence(configuration: Any) -> None:
    """Have the client refresh a token that is over without a log line for each request.

    A token that stays as it was is refused, and then `renew` says why there is no other.
    """
    refresh = configuration.refresh_api_key_hook
    if refresh is None:
        return

    def silently(used: Any) -> None:
        with _plugin_failures():
            refresh(used)
        _trim_token(used)
        used.refresh_api_key_hook = silently  # `refresh` has put itself there

    configuration.refresh_api_key_hook = silently


@contextmanager
def _plugin_failures() -> Iterator[_PluginFailures]:
    """Collect what this thread logs of a failing plugin."""
    failures, silent = _PluginFailures(), logging.NullHandler()
    root = logging.getLogger()
    root.addHandler(silent)  # without any handler the client would add one that prints
    root.addFilter(failures)
    try:
        yield failures
    finally:
        root.removeFilter(failures)
        root.removeHandler(silent)


def _load(configuration: client.Configuration, kubeconfig: str | None, context: str | None) -> None:
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
