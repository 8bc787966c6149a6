"""`reconciler sandbox interrupt`: has the sandbox's EC2 take spot instances back."""

import hashlib
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

import typer

from reconciler.cli.terminal.output import Output, OutputOption, print_data, print_table, wanted
from reconciler.model.errors import NotFound, UsageError
from reconciler.sandbox.aws.front.control_client import ControlClient

Kind = Literal["interruption", "rebalance", "scheduled-change"]
_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
_COLUMNS: Final = ("private_dns_name", "instance_id", "instance_type", "zone", "lifecycle")

Facts = Mapping[str, Any]


def interrupt(
    nodes: Annotated[
        list[str] | None,
        typer.Argument(metavar="NODE", help="Nodes or instance ids.", show_default=False),
    ] = None,
    *,
    percent: Annotated[
        float | None,
        typer.Option(
            min=0, max=100, help="Interrupt this share of the running spot instances instead."
        ),
    ] = None,
    kind: Annotated[Kind, typer.Option(help="Kind of event to announce.")] = "interruption",
    notice_seconds: Annotated[
        float,
        typer.Option(
            min=0, help="Seconds until EC2 ends them, or until the scheduled change begins."
        ),
    ] = 120.0,
    seed: Annotated[int, typer.Option(help="Seed for choosing the instances of --percent.")] = 0,
    output: OutputOption = None,
) -> None:
    """Announce a spot interruption to nodes of the running sandbox, and end them.

    With a rebalance recommendation or a scheduled change nothing happens to the instances.
    """
    control = ControlClient(_sandbox_url())
    _, facts = control.instances()
    running = sorted(
        (fact for fact in facts if fact["state"] == "running"), key=lambda f: str(f["instance_id"])
    )
    chosen = _chosen(running, nodes or [], percent, seed)
    ids = [str(each["instance_id"]) for each in chosen]
    if kind == "interruption":
        announced = control.interrupt(ids, notice_seconds)
    else:
        announced = control.announce(kind, ids, notice_seconds)
    rows = [each for each in chosen if each["instance_id"] in set(announced)]
    if (form := wanted(output)) is not Output.TABLE:
        print_data({kind: [{key: row[key] for key in _COLUMNS} for row in rows]}, form)
    else:
        print_table(
            ("node", "instance", "type", "zone", "lifecycle"),
            [[row[key] for key in _COLUMNS] for row in rows],
        )


def _sandbox_url() -> str:
    """Return the sandbox's endpoint, never that of AWS.

    Raises:
        UsageError: No sandbox is named.
    """
    url = os.environ.get("AWS_ENDPOINT_URL", "")  # noqa: TID251 - as `sandbox up` prints it
    try:
        host = urlsplit(url).hostname
    except ValueError:
        host = None
    if host not in _LOOPBACK:
        raise UsageError(
            "AWS_ENDPOINT_URL",
            "names no sandbox on this machine",
            "export what `reconciler sandbox up` printed, or run this inside of it",
        )
    return url


def _chosen(
    running: Sequence[Facts], names: Sequence[str], percent: float | None, seed: int
) -> Sequence[Facts]:
    """Return the instances of these names, or a share of the spot ones.

    Raises:
        UsageError: Neither is asked for, or both.
        NotFound: No running instance has one of the names.
    """
    if bool(names) == (percent is not None):
        raise UsageError("sandbox interrupt", "takes either nodes or --percent")
    if percent is not None:
        spot = [each for each in running if each["lifecycle"] == "spot"]
        count = math.ceil(len(spot) * percent / 100)
        return _shuffled(spot, seed)[:count]
    by_name = {str(each[key]): each for each in running for key in _COLUMNS[:2]}
    missing = [name for name in names if name not in by_name]
    if missing:
        raise NotFound(missing[0], "is not a running instance of the sandbox")
    return [by_name[name] for name in dict.fromkeys(names)]


def _shuffled(instances: Iterable[Facts], seed: int) -> list[Facts]:
    """Return the instances in a pseudo-random order that depends only on the seed."""
    return sorted(
        instances,
        key=lambda each: hashlib.sha256(f"{seed} {each['instance_id']}".encode()).digest(),
    )
