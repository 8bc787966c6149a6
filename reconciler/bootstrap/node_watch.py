"""The node watch as a process: its clients, the machine's clock, and what ends it when it hangs."""

import faulthandler
import os
import sys
import threading
from pathlib import Path
from typing import Final

from reconciler import __version__
from reconciler.adapters.system_clock import SystemClock, stop_on_signals
from reconciler.node_watch import log
from reconciler.node_watch.metadata import InstanceMetadata
from reconciler.node_watch.own_node import ApiPlace, OwnNodeClient
from reconciler.node_watch.watch import NodeWatch

HANG_SECONDS: Final = 120
"""A turn that takes longer ends the process, and the kubelet restarts it. All calls have time
limits, so this is for what no limit covers. A probe would need an open port on the host network, or
a second Python every few seconds. SIGALRM would not do: the kernel does not deliver it to the first
process of a container."""


def api_server_url() -> str:
    """Return the API server that the kubelet names to each pod; empty outside of a cluster."""
    host = os.environ.get("KUBERNETES_SERVICE_HOST", "")  # noqa: TID251 - set by the kubelet
    port = os.environ.get("KUBERNETES_SERVICE_PORT", "443")  # noqa: TID251 - as above
    if not host:
        return ""
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"


def watch_node(*, node_name: str, metadata_url: str, api_server: str, account: Path) -> None:
    """Watch until SIGTERM or SIGINT.

    Raises:
        UsageError: An address or the node's name is invalid.
    """
    stop = threading.Event()
    clock = SystemClock(stop)
    lines = log.StateLog(sys.stderr, clock.now, node_name)
    metadata = InstanceMetadata(metadata_url, clock.monotonic_seconds)
    node = OwnNodeClient(ApiPlace(url=api_server, account=account), node_name)
    with stop_on_signals(stop):
        lines.tell(log.STARTED, version=__version__)
        watch = NodeWatch(metadata, node, clock, lines)
        watch.run(stop.wait, lambda: end_after(HANG_SECONDS))
        faulthandler.cancel_dump_traceback_later()
        metadata.close()
        lines.tell(log.STOPPED)


def end_after(seconds: float) -> None:
    """End the process with exit code 1 after this time, unless called again before."""
    faulthandler.dump_traceback_later(seconds, exit=True)
