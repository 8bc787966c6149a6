"""A sector config from a file or a text: typed, or refused with every fault at its place."""

import sys
from pathlib import Path

from pydantic import ValidationError

from reconciler.config import problems, yaml_loader
from reconciler.config.faults import SYNTAX, in_file_order
from reconciler.config.rules import check_rules
from reconciler.config.schema import SectorConfig
from reconciler.config.tree import Mapping, to_data
from reconciler.model.errors import ConfigError, Problem

DEFAULT_FILE = "sectors.yaml"


def load_config(path: str | Path, *, cluster_name: str | None = None) -> SectorConfig:
    """Read a sector config from a file; `-` is standard input.

    Args:
        path: The file.
        cluster_name: Name given elsewhere (`--cluster-name`); it wins over the file's.

    Raises:
        ConfigError: Every fault, in file order; also when the file is missing or unreadable.
    """
    name = "<stdin>" if str(path) == "-" else str(path)
    return parse_config(read_config_bytes(path), name=name, cluster_name=cluster_name)


def read_config_bytes(path: str | Path) -> bytes:
    """The bytes of a config file, one more than the limit at most.

    Raises:
        ConfigError: Missing, a directory, unreadable.
    """
    limit = yaml_loader.BYTES_MAX + 1
    try:
        if str(path) == "-":
            return sys.stdin.buffer.read(limit)
        with Path(path).open("rb") as file:
            return file.read(limit)
    except FileNotFoundError:
        reason = "no such file"
    except IsADirectoryError:
        reason = "is a directory"
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "cannot be read"
    raise ConfigError(str(path), (Problem(line=1, column=1, path="", code=SYNTAX, message=reason),))


def parse_config(
    content: bytes | str, *, name: str = "<config>", cluster_name: str | None = None
) -> SectorConfig:
    """Read a sector config from its text.

    Args:
        content: The YAML, as bytes of a file or as text.
        name: What to call it in messages.
        cluster_name: Name given elsewhere (`--cluster-name`); it wins over the file's.

    Raises:
        ConfigError: Every fault, in file order.
    """
    try:
        text = content if isinstance(content, str) else yaml_loader.decode(content)
        root, found = yaml_loader.compose(text)
    except yaml_loader.Unreadable as error:
        raise ConfigError(name, (error.problem,)) from None
    config, wrong = _validate(root)
    wrong += [*found, *check_rules(root, cluster_name)]
    if config is None or wrong:
        raise ConfigError(name, in_file_order(wrong))
    return config if cluster_name is None else config.model_copy(update={"cluster": cluster_name})


def _validate(root: Mapping) -> tuple[SectorConfig | None, list[Problem]]:
    """The typed config, or what is wrong with single values."""
    try:
        return SectorConfig.model_validate(to_data(root)), []
    except ValidationError as error:
        return None, list(problems.from_validation(error, root))
