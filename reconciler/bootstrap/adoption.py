"""Wires `reconciler import`: what AWS has, live or from files, into a folder."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reconciler.adapters.aws import home_region
from reconciler.adapters.aws.adoptable import read_adoptable
from reconciler.adapters.files.reading import read_inputs
from reconciler.config.catalogue import load_catalogue
from reconciler.config.document import read_document
from reconciler.config.loader import parse_config, read_config_bytes
from reconciler.gitops.adoption.adopt import Adoption, adopt
from reconciler.model.errors import InputError, UsageError
from reconciler.model.ids import Region
from reconciler.model.snapshot import Ignored
from reconciler.records.aws import Answer, decode_cloud, read_descriptions, split_answers

CONFIG = "sectors.yaml"
IMPORTS = "terraform/imports.tf"
"""Beside the rendered root, which leaves files of others alone."""
_UNNAMED_REGION = Region("home")


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptionRequest:
    """What `reconciler import` is told."""

    out: Path
    cluster_name: str | None = None
    region: str | None = None
    aws_files: tuple[str, ...] = ()
    """Answers of the AWS CLI; empty: EC2 and Auto Scaling are asked."""
    config: str | None = None
    """A config that exists, such as Kluster Fleet Manager's; it wins over what is found."""


def adopt_existing(request: AdoptionRequest) -> tuple[Adoption, tuple[Ignored, ...]]:
    """Describe what exists and write it; nothing in AWS is changed, no file overwritten.

    Raises:
        UsageError: No cluster or region is named, or the folder has a config already.
        InputError: A file cannot be read or written.
        ConfigError: The given config, or what was found, breaks a rule.
        PortError: AWS did not answer.
    """
    base, named = _base(request.config)
    cluster = request.cluster_name or named
    if not cluster:
        raise UsageError("--cluster-name", "no cluster is named", "give the EKS cluster's name")
    targets = (request.out / CONFIG, request.out / IMPORTS)
    for target in targets:
        if target.exists():
            raise UsageError(str(target), "exists already", "name another folder with --out")
    region, answers = _answers(request)
    ignored: list[Ignored] = []
    fleets = read_descriptions(answers, cluster, ignored)
    state = decode_cloud(((region, each) for each in answers), cluster=cluster)
    made = adopt(
        cluster,
        fleets,
        [fleet for fleet in state.fleets if fleet.provider == "asg"],
        region="" if region == _UNNAMED_REGION or "regions" in base else region,
        base=base,
        catalogue=load_catalogue(),
    )
    if not made.fleets:
        where = "the files" if request.aws_files else str(region)
        raise InputError(where, f"nothing there carries the tags of cluster {cluster}")
    for target, content in zip(targets, (made.config, made.imports), strict=True):
        if content:
            _write(target, content)
    return made, tuple(ignored)


def _base(config: str | None) -> tuple[Mapping[str, Any], str | None]:
    """A config document that loads, and the cluster it names."""
    if config is None:
        return {}, None
    content = read_config_bytes(config)
    named = parse_config(content, name=config).cluster
    return read_document(content, name=config), named


def _answers(request: AdoptionRequest) -> tuple[Region, list[Answer]]:
    if not request.aws_files:
        region = request.region or home_region()
        if not region:
            raise UsageError("--region", "none is named", "give --region or set AWS_REGION")
        return Region(region), read_adoptable(Region(region))
    home = Region(request.region) if request.region else _UNNAMED_REGION
    split = [
        pair
        for where, body in read_inputs(request.aws_files)
        for pair in split_answers(body, where, home)
    ]
    others = sorted({region for region, _ in split if region != home})
    if home == _UNNAMED_REGION and len(others) == 1 and all(r == others[0] for r, _ in split):
        home = others[0]
    return home, [answer for region, answer in split if region == home]


def _write(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            file.write(content)
    except OSError as error:
        raise InputError(str(path), f"cannot be written: {error.strerror}") from error
