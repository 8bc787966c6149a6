"""What `reconciler validate` reports about a config: faults and warnings, in file order."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from reconciler.config.catalogue import load_catalogue
from reconciler.config.faults import UNKNOWN_TYPE, in_file_order
from reconciler.config.loader import ConfigReading, read_config, read_config_bytes
from reconciler.config.module.rendering import unrenderable, wants_rendering
from reconciler.config.named import configs_in
from reconciler.config.rules.document import Document
from reconciler.config.schema import SectorConfig
from reconciler.config.warnings import check_warnings
from reconciler.config.warnings.subject import Subject
from reconciler.model.errors import ConfigError, Problem, ReconcilerError


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedConfig:
    """The faults and warnings of one of the named configs."""

    name: str
    """The file's name in messages; `<stdin>` for standard input."""
    problems: tuple[Problem, ...]
    """Its faults and warnings, in file order."""


def check_named(
    names: Iterable[str], *, cluster_name: str | None = None, strict: bool = False
) -> tuple[CheckedConfig, ...]:
    """Check every named config, once each, in the order of the names.

    Args:
        names: Files, `-` for standard input, and directories; see `configs_in`.
        cluster_name: Name given elsewhere (`--cluster-name`); it overrides each file's.
        strict: Whether to include warnings that are acceptable for many configs.
    """
    return tuple(
        CheckedConfig(
            name="<stdin>" if path == "-" else path,
            problems=check_file(path, cluster_name=cluster_name, strict=strict)
            if problem is None
            else (problem,),
        )
        for path, problem in configs_in(names)
    )


def check_file(
    path: str, *, cluster_name: str | None = None, strict: bool = False
) -> tuple[Problem, ...]:
    """Return every fault and warning of a config file; `-` is standard input.

    Args:
        path: The file.
        cluster_name: Name given elsewhere (`--cluster-name`); it overrides the file's.
        strict: Whether to include warnings that are acceptable for many configs.
    """
    directory = Path() if path == "-" else Path(path).parent
    try:
        content = read_config_bytes(path)
    except ConfigError as error:
        return error.problems
    reading = read_config(content, cluster_name=cluster_name, directory=directory)
    return check_reading(reading, strict=strict, directory=directory)


def check_reading(
    reading: ConfigReading, *, strict: bool = False, directory: Path | None = None
) -> tuple[Problem, ...]:
    """Return every fault and warning of a config text in a folder; see `check_file`."""
    beyond = _further_faults(reading, directory or Path(), strict=strict)
    return in_file_order([*reading.problems, *beyond])


def _further_faults(reading: ConfigReading, directory: Path, *, strict: bool) -> Iterator[Problem]:
    """Yield faults for running and rendering, and what is probably wrong."""
    document, config = reading.document, reading.config
    if document is None or config is None:
        return
    if wants_rendering(config):
        yield from _errors_of_rendering(document, config)
    if not reading.problems:
        yield from _warnings(document, config, directory, strict=strict)


def _errors_of_rendering(document: Document, config: SectorConfig) -> Iterator[Problem]:
    """Yield the faults for which `render` refuses a config."""
    yield from unrenderable(document, config)


def _warnings(
    document: Document, config: SectorConfig, directory: Path, *, strict: bool
) -> Iterator[Problem]:
    named = None if config.catalogue is None else str(directory / config.catalogue)
    try:
        catalogue = load_catalogue(named)
    except ReconcilerError as error:
        message = (
            f"catalogue: {named}: {error.what}; plan and run stop where it is missing,"
            " and what is stated on instance types here is from the package's own catalogue"
        )
        yield document.problem(UNKNOWN_TYPE, ("catalogue",), message, severity="warning")
        catalogue = load_catalogue()
    subject = Subject(document=document, config=config, catalogue=catalogue)
    yield from check_warnings(subject, strict=strict)
