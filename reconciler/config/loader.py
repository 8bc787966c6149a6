"""Reads a sector config from a file or a text: typed, or refused with every fault at its place."""

import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from pydantic import ValidationError

from reconciler.config import problems, yaml_loader
from reconciler.config.descheduler import Descheduler
from reconciler.config.descheduler_policy import PolicyFileFaults, with_policy_file
from reconciler.config.faults import SYNTAX, TYPE, in_file_order
from reconciler.config.module.rendering import unrenderable
from reconciler.config.module.values import check_module_values
from reconciler.config.rules import check_rules
from reconciler.config.rules.document import Document
from reconciler.config.rules.names import check_cluster_name
from reconciler.config.schema import SectorConfig
from reconciler.config.tree import Mapping, dotted, place_of, to_data
from reconciler.machine.plain_file import open_plain
from reconciler.model.errors import ConfigError, Problem, why_unreadable

DEFAULT_FILE = "sectors.yaml"


class Purpose(Enum):
    """What a config is read for; it decides what the config must and must not say."""

    PLAN = "plan"
    """To plan, or to look something up. Module variables need not be complete."""
    RUN = "run"
    """For the capacity loop. What this version does not do may not be asked for."""
    RENDER = "render"
    """For Terraform. What `terraform plan` would refuse is a fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigReading:
    """A config text as far as it can be read, with its faults."""

    document: Document | None
    """None when the text is no YAML mapping."""
    config: SectorConfig | None
    """None when a single value is wrong."""
    problems: tuple[Problem, ...]
    """The faults that hold whatever the config is read for, in file order."""


def load_config(
    path: str | Path, *, cluster_name: str | None = None, purpose: Purpose = Purpose.PLAN
) -> SectorConfig:
    """Read a sector config from a file; `-` is standard input.

    Args:
        path: The file.
        cluster_name: Name given elsewhere (`--cluster-name`); it overrides the file's.
        purpose: What it is read for.

    Raises:
        ConfigError: Every fault, in file order; also when the file is missing or unreadable.
        UsageError: The cluster's name is invalid.
    """
    standard_input = str(path) == "-"
    directory = Path() if standard_input else Path(path).parent
    return parse_config(
        read_config_bytes(path),
        name="<stdin>" if standard_input else str(path),
        cluster_name=cluster_name,
        directory=directory,
        purpose=purpose,
    )


def read_config_bytes(path: str | Path, *, regular: bool = False) -> bytes:
    """Return the bytes of a config file, at most one more than the limit.

    Args:
        path: The file, or `-` for the standard input.
        regular: Whether it has to be a regular file: a config may name any device or pipe of the
            machine that reads it, which may never end.

    Raises:
        ConfigError: The file is missing, a directory, or unreadable.
    """
    limit = yaml_loader.BYTES_MAX + 1
    try:
        if str(path) == "-":
            return sys.stdin.buffer.read(limit)
        file = Path(path)
        with open_plain(file, links=True) if regular else file.open("rb") as stream:
            return stream.read(limit)
    except (OSError, ValueError) as error:
        reason = why_unreadable(error)
    raise ConfigError(str(path), (Problem(line=0, column=0, path="", code=SYNTAX, message=reason),))


def files_named(content: bytes) -> tuple[str | None, str | None]:
    """Return the policy file and the catalogue that a config names, whatever faults it has."""
    try:
        root, _ = yaml_loader.compose(yaml_loader.decode(content))
    except yaml_loader.Unreadable:
        return None, None
    return root.mapping("descheduler").text("policy_file"), root.text("catalogue")


def program_named(content: bytes) -> SectorConfig:
    """Return what a config says of the program that runs with it, whatever faults it has.

    Only `cluster`, `listen` and `listen_token_file` are read, each if it is valid by itself.
    """
    try:
        root, _ = yaml_loader.compose(yaml_loader.decode(content))
    except yaml_loader.Unreadable:
        return SectorConfig()
    sector_config = SectorConfig()
    for key in ("cluster", "listen", "listen_token_file"):
        with suppress(ValidationError):
            read = SectorConfig.model_validate({key: root.text(key)})
            sector_config = sector_config.model_copy(update={key: getattr(read, key)})
    return sector_config


def parse_config(
    content: bytes | str,
    *,
    name: str = "<config>",
    cluster_name: str | None = None,
    directory: Path | None = None,
    purpose: Purpose = Purpose.PLAN,
) -> SectorConfig:
    """Read a sector config from its text.

    Args:
        content: The YAML, as bytes of a file or as text.
        name: Its name in messages.
        cluster_name: Name given elsewhere (`--cluster-name`); it overrides the file's.
        directory: Where `descheduler.policy_file` is looked for; None: it is not read.
        purpose: What it is read for.

    Raises:
        ConfigError: Every fault, in file order.
        UsageError: The cluster's name is invalid.
    """
    reading = read_config(content, cluster_name=cluster_name, directory=directory)
    wrong = in_file_order([*reading.problems, *_faults_for(purpose, reading)])
    if reading.config is None or wrong:
        raise ConfigError(name, wrong)
    return reading.config


def read_config(
    content: bytes | str, *, cluster_name: str | None = None, directory: Path | None = None
) -> ConfigReading:
    """Read a sector config as far as possible; see `parse_config` for the arguments.

    Raises:
        UsageError: The cluster's name is invalid.
    """
    if cluster_name is not None:
        check_cluster_name(cluster_name)
    try:
        text = content if isinstance(content, str) else yaml_loader.decode(content)
        root, found = yaml_loader.compose(text)
    except yaml_loader.Unreadable as error:
        return ConfigReading(document=None, config=None, problems=(error.problem,))
    config, wrong = _validate(root)
    wrong += [*found, *check_rules(root, cluster_name)]
    policy_file = root.mapping("descheduler").text("policy_file")
    if policy_file is not None and directory is not None:
        config, unusable = _with_policies(config, directory / policy_file, root)
        wrong += unusable
    document = Document(root, cluster_name)
    if config is not None:
        if cluster_name is not None:
            config = config.model_copy(update={"cluster": cluster_name})
        wrong += check_module_values(document, config)
    return ConfigReading(document=document, config=config, problems=in_file_order(wrong))


def _faults_for(purpose: Purpose, reading: ConfigReading) -> Iterator[Problem]:
    """Yield the faults that matter only for this purpose."""
    if reading.document is None or reading.config is None:
        return
    if purpose is Purpose.RENDER:
        yield from unrenderable(reading.document, reading.config)


def _validate(root: Mapping) -> tuple[SectorConfig | None, list[Problem]]:
    """Return the typed config, or the faults of single values."""
    try:
        return SectorConfig.model_validate(to_data(root)), []
    except ValidationError as error:
        return None, list(problems.from_validation(error, root))


def _with_policies(
    config: SectorConfig | None, file: Path, root: Mapping
) -> tuple[SectorConfig | None, list[Problem]]:
    """Return the config with the policies of its policy file, or why they cannot be used."""
    descheduler = config.descheduler if config is not None else Descheduler()
    try:
        descheduler = with_policy_file(descheduler, read_config_bytes(file, regular=True))
    except PolicyFileFaults as error:
        wrong = [f"{file.name}:{message}" for message in error.messages]
    except ConfigError as error:
        wrong = [f"{file.name}: {error.problems[0].message}"]
    else:
        updated = config.model_copy(update={"descheduler": descheduler}) if config else None
        return updated, []
    location = ("descheduler", "policy_file")
    place = place_of(root, location)
    path = dotted(location)
    return config, [
        Problem(line=place.line, column=place.column, path=path, code=TYPE, message=message)
        for message in wrong
    ]
