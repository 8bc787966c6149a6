"""Finds the address of the running reconciler: an option, else the config's `listen`."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reconciler.cli.terminal.messages import tell
from reconciler.config.loader import DEFAULT_FILE
from reconciler.model.errors import ConfigError

if TYPE_CHECKING:
    from reconciler.config.schema import SectorConfig

StatusUrlOption = Annotated[
    str | None,
    typer.Option(
        "--status-url",
        "--listen",
        metavar="HOST:PORT",
        envvar=["RECONCILER_STATUS_URL", "RECONCILER_LISTEN"],
        help="Address of the running reconciler, also as http://HOST:PORT."
        " Default: the config's `listen`, else 127.0.0.1:9235.",
    ),
]
TokenFileOption = Annotated[
    Path | None,
    typer.Option(
        "--listen-token-file",
        metavar="FILE",
        envvar="RECONCILER_LISTEN_TOKEN_FILE",
        help="File with the bearer token that it requires. Default: the config's"
        " `listen_token_file`.",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningProgram:
    """A reconciler that may be running somewhere."""

    address: str
    """`HOST:PORT`."""
    token: bytes | None
    cluster: str
    """The expected cluster, as far as config or flags name one; empty: any."""


def program_of(
    status_url: str | None, token_file: Path | None, config: str, cluster: str | None = None
) -> RunningProgram:
    """Return the address and token to use.

    The address is read from a config with faults too, and a warning names the first fault: the
    program runs on with its last valid config, and one asks it because of the faults.

    Raises:
        ConfigError: The config is named and cannot be read at all.
        UsageError: The token file holds no token.
    """
    address, read = status_url, None
    if address is None or cluster is None:
        read = _config_of(config)
    if address is None and read is not None:
        address = read.listen
        if token_file is None and read.listen_token_file is not None:
            token_file = Path(read.listen_token_file)
    return RunningProgram(
        address=(address or "").removeprefix("http://").rstrip("/"),
        token=None if token_file is None else _token(token_file),
        cluster=cluster or (read.cluster if read is not None else None) or "",
    )


def _config_of(config: str) -> "SectorConfig":
    """Return the config; the defaults when there is no such file and none was named."""
    from reconciler.config import loader  # noqa: PLC0415 - slow to load
    from reconciler.config.schema import SectorConfig  # noqa: PLC0415 - slow to load

    if config == DEFAULT_FILE and not Path(config).exists():
        return SectorConfig()
    content = loader.read_config_bytes(config)
    try:
        return loader.parse_config(content, name=config, directory=Path(config).parent)
    except ConfigError as error:
        hint = "the running program is asked nevertheless; reconciler validate lists every fault"
        tell("warning", error.where, error.what, hint=hint)
        return loader.program_named(content)


def _token(file: Path) -> bytes:
    """Return the bearer token in a file; UsageError when there is none."""
    from reconciler.web.access import AccessRules, read_token  # noqa: PLC0415 - slow to load

    AccessRules(token_file=file).check_token_file()
    return read_token(file) or b""
