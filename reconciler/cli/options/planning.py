"""The options of commands that plan: from live APIs, or offline from files."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Final

import typer

from reconciler.model.errors import UsageError
from reconciler.records.times import YEARS

if TYPE_CHECKING:
    from reconciler.bootstrap.planning.planning import PlanRequest

_RFC_3339: Final = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?([Zz]|[+-]\d\d:\d\d)", re.ASCII
)
"""A time with an offset; the seconds may be left out."""
ConfigOption = Annotated[
    str,
    typer.Option(metavar="FILE", help="Sector config; - is stdin. RECONCILER_CONFIG is not read."),
]
ClusterOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILE...", help="Kubernetes objects, as `kubectl get -o json` prints them."
    ),
]
AwsOption = Annotated[
    list[str] | None, typer.Option(metavar="FILE...", help="Answers of the AWS CLI, as JSON.")
]
NowOption = Annotated[
    str | None, typer.Option(metavar="TIME", help="Time of the plan, RFC 3339; default: now.")
]
ClusterNameOption = Annotated[str | None, typer.Option(help="EKS cluster; overrides the config's.")]
RegionsOption = Annotated[
    str | None, typer.Option(help="Regions, comma separated, the preferred one first.")
]
KubeconfigOption = Annotated[
    str | None, typer.Option(metavar="FILE", help="Kubeconfig for planning from the live API.")
]
ContextOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="Context of the kubeconfig; default: current.")
]
PodNamespaceOption = Annotated[
    str | None,
    typer.Option(
        help="Namespace whose pods count as demand; pods of others still occupy their nodes."
    ),
]
LeaseNamespaceOption = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Namespace whose Lease counts if there are several."),
]
CatalogueOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", help="Prices and instance types, from `reconciler catalogue refresh`."
    ),
]


def request_of(
    config: str,
    cluster: list[str] | None,
    aws: list[str] | None,
    now: str | None,
    **flags: str | None,
) -> "PlanRequest":
    """Return what is to be planned; the keywords are flags, `_` for `-`.

    Raises:
        UsageError: A time that is none, or standard input for two things.
    """
    from reconciler.bootstrap.planning import planning  # noqa: PLC0415 - numpy: slow

    assert_read_once({"--config": [config], "--cluster": cluster, "--aws": aws})
    return planning.PlanRequest(
        config=config,
        flags={name.replace("_", "-"): value for name, value in flags.items()},
        cluster_files=tuple(cluster or ()),
        aws_files=tuple(aws or ()),
        now=_moment(now),
    )


def assert_read_once(files: Mapping[str, Sequence[str] | None]) -> None:
    """Refuse `-` for two options before anything is read: the second would find nothing.

    Raises:
        UsageError: Two options name standard input.
    """
    reading = [option for option, named in files.items() if "-" in (named or ())]
    if len(reading) > 1:
        what = "standard input can be read once, and each of them is -"
        raise UsageError(" and ".join(reading), what, "save one to a file")


def _moment(text: str | None) -> datetime | None:
    """Return an RFC 3339 time with an offset, of a plausible year.

    Raises:
        UsageError: It is not one.
    """
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text.upper()) if _RFC_3339.fullmatch(text) else None
    except ValueError:
        moment = None
    if moment is None:
        raise UsageError("--now", f"{text!r} is not a time", "for example 2026-01-31T12:00:00Z")
    if moment.year not in YEARS:
        raise UsageError("--now", f"its year is {moment.year}, not from {YEARS[0]} to {YEARS[-1]}")
    return moment
