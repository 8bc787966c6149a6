"""`reconciler node-watch`: writes what EC2 announces to an instance onto its node."""

from pathlib import Path
from typing import Annotated

import typer

from reconciler.model.errors import UsageError

EXAMPLE = "NODE_NAME=ip-10-0-0-7.us-west-2.compute.internal reconciler node-watch"


def command(
    *,
    node_name: Annotated[
        str, typer.Option(envvar="NODE_NAME", help="Name of the node on which this runs.")
    ] = "",
    metadata_url: Annotated[
        str,
        typer.Option(
            metavar="URL",
            envvar="AWS_EC2_METADATA_SERVICE_ENDPOINT",
            help="Address of the instance metadata; on IPv6 nodes http://[fd00:ec2::254].",
        ),
    ] = "http://169.254.169.254",
    api_server: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Address of the API server. Default: that of the pod's cluster."
        ),
    ] = None,
    service_account: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder with token and ca.crt.")
    ] = Path("/var/run/secrets/kubernetes.io/serviceaccount"),
) -> None:
    """Watch instance metadata, and write EC2's notices onto this node's Node object.

    For clusters without an interruption queue; `reconciler manifest --node-watch` runs it on every
    spot node. It ends at SIGTERM.
    """
    from reconciler.bootstrap.node_watch import (  # noqa: PLC0415 - slow to load
        api_server_url,
        watch_node,
    )

    if not node_name:
        raise UsageError("--node-name", "is not given", "set it, or NODE_NAME")
    url = api_server or api_server_url()
    if not url:
        raise UsageError("--api-server", "is not given", "this does not run in a cluster")
    watch_node(
        node_name=node_name, metadata_url=metadata_url, api_server=url, account=service_account
    )
