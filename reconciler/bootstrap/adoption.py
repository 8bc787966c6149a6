"""Wires `reconciler import`: writes what AWS has, live or from files, into a folder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from reconciler.adapters.aws import home_region
from reconciler.adapters.aws.adoptable import read_adoptable
from reconciler.adapters.files.reading import read_inputs
from reconciler.config.catalogue import load_catalogue
from reconciler.config.document import read_document, with_stated_keys
from reconciler.config.loader import parse_config, read_config_bytes
from reconciler.config.rules.names import check_cluster_name
from reconciler.gitops.adoption.adopt import Adoption, adopt
from reconciler.model.errors import InputError, UsageError
from reconciler.model.ids import Region
from reconciler.model.snapshot import Ignored
from reconciler.records.aws import (
    Answer,
    decode_cloud,
    read_descriptions,
    read_group_descriptions,
    split_answers,
)

CONFIG = "sectors.yaml"
IMPORTS = "terraform/imports.tf"
"""Next to the rendered root, where a render does not touch files of others."""
_UNNAMED_REGION = Region("home")
_SHOWN_MAX = 5
"""How many reasons one message names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptionRequest:
    """Holds the options of `reconciler import`."""

    out: Path
    cluster_name: str | None = None
    region: str | None = None
    aws_files: tuple[str, ...] = ()
    """Answers of the AWS CLI; empty: EC2 and Auto Scaling are asked."""
    config: str | None = None
    """An existing config, such as Kluster Fleet Manager's; it overrides what is found."""


def adopt_existing(request: AdoptionRequest) -> tuple[Adoption, tuple[Ignored, ...]]:
    """Describe what exists and write it; nothing in AWS is changed, no file overwritten.

    Raises:
        UsageError: No cluster or region is named, or the folder has a config already.
        InputError: A file cannot be read or written.
        ConfigError: The given config, or what was found, breaks a rule.
        PortError: AWS did not answer.
    """
    if request.cluster_name is not None:
        check_cluster_name(request.cluster_name)
    base, named, home = _base(request.config)
    cluster = request.cluster_name or named
    if not cluster:
        raise UsageError("--cluster-name", "no cluster is named", "give the EKS cluster's name")
    targets = (request.out / CONFIG, request.out / IMPORTS)
    for target in targets:
        if target.exists():
            raise UsageError(str(target), "exists already", "name another folder with --out")
    region, answers, missing = _answers(request, home)
    ignored: list[Ignored] = []
    fleets = read_descriptions(answers, cluster, ignored)
    state = decode_cloud(((region, answer) for answer in answers), cluster=cluster)
    groups = [fleet for fleet in state.fleets if fleet.provider == "asg"]
    made = adopt(
        cluster,
        fleets,
        groups,
        described=read_group_descriptions(answers, [group.id for group in groups], ignored),
        region="" if region == _UNNAMED_REGION or "regions" in base else region,
        base=base,
        catalogue=load_catalogue(),
    )
    if not made.fleets:
        where = "the files" if request.aws_files else str(region)
        raise InputError(where, _nothing_adopted(cluster, made.left_out, ignored))
    write_all(dict(zip(targets, (made.config, made.imports), strict=True)))
    return replace(made, notes=(*missing, *made.notes)), tuple(ignored)


def _nothing_adopted(
    cluster: str, left_out: Mapping[str, str], unreadable: Sequence[Ignored]
) -> str:
    """Return why there is nothing to write: no tags match, or nothing can be carried over."""
    reasons = [f"{each_id}: {reason}" for each_id, reason in left_out.items()]
    reasons += [f"{each.name or each.kind}: cannot be read" for each in unreadable]
    if not reasons:
        return f"nothing there carries the tags of cluster {cluster}"
    more = f"; and {len(reasons) - _SHOWN_MAX} more" if len(reasons) > _SHOWN_MAX else ""
    shown = "; ".join(reasons[:_SHOWN_MAX])
    return f"no fleet or group of cluster {cluster} can be imported: {shown}{more}"


def _base(config: str | None) -> tuple[Mapping[str, Any], str | None, str]:
    """Return a config document that loads, with the cluster and the home Region that it names."""
    if config is None:
        return {}, None, ""
    content = read_config_bytes(config)
    parsed = parse_config(content, name=config)
    home = parsed.regions[0] if parsed.regions else ""
    return with_stated_keys(read_document(content, name=config)), parsed.cluster, home


def _answers(request: AdoptionRequest, home: str) -> tuple[Region, list[Answer], tuple[str, ...]]:
    """Return the Region to adopt from, what AWS has there, and what it did not answer.

    Raises:
        UsageError: It is not named, or is another than the config's home, whose fleets alone the
            root module has.
    """
    if request.region and home and request.region != home:
        raise UsageError("--region", f"{request.region} is not the config's home Region {home}")
    wanted = request.region or home
    if request.aws_files:
        return *_answers_of_files(request.aws_files, wanted), ()
    region = Region(wanted or home_region() or "")
    if not region:
        raise UsageError("--region", "no Region is named", "give --region or set AWS_REGION")
    return region, *read_adoptable(region)


def _answers_of_files(files: tuple[str, ...], wanted: str) -> tuple[Region, list[Answer]]:
    """Return the answers of the wanted Region; without one, of the only Region in the files."""
    home = Region(wanted) if wanted else _UNNAMED_REGION
    split = [
        pair for where, body in read_inputs(files) for pair in split_answers(body, where, home)
    ]
    named = sorted({region for region, _ in split})
    if not wanted and len(named) == 1:
        home = named[0]
    found = [answer for region, answer in split if region == home]
    if split and not found:
        where = f"are of {', '.join(named)}, not of {home}" if wanted else "are of several Regions"
        raise UsageError("--aws", f"the files {where}", "one import is of one Region: --region")
    return home, found


def write_all(contents: Mapping[Path, bytes]) -> None:
    """Write all files or none: a config without its import blocks would recreate every fleet."""
    written: list[Path] = []
    try:
        for path, content in contents.items():
            if content:
                _write(path, content)
                written.append(path)
    except InputError:
        for path in written:
            path.unlink(missing_ok=True)
        raise


def _write(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            try:
                file.write(content)
            except OSError:
                path.unlink(missing_ok=True)
                raise
    except OSError as error:
        raise InputError(str(path), f"cannot be written: {error.strerror}") from error
