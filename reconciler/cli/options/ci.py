"""Options that the stages of `reconciler ci` share, and the stages themselves."""

from pathlib import Path
from typing import Annotated, Any, Final

import typer

DETAILED_EXITCODE: Final = "--detailed-exitcode"

DirOption = Annotated[
    Path, typer.Option("--dir", metavar="DIR", help="Root module, as `render` writes it.")
]
ConfigOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Sector config, for limits, prices and allow_destroy."
        " Default: sectors.yaml next to DIR, when it is there.",
    ),
]
BackendOption = Annotated[
    list[str] | None,
    typer.Option(
        "--backend-config",
        metavar="FILE|KEY=VALUE",
        help="Backend setting for terraform init; repeatable.",
    ),
]
TypesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-type",
        metavar="TYPE",
        help="Resource or data source type of your own in DIR; repeatable.",
    ),
]
FilesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-file",
        metavar="PATH[=SHA256]",
        help="File in DIR that was not rendered and that Terraform may see; repeatable.",
    ),
]
LockOption = Annotated[
    int,
    typer.Option(
        "--lock-timeout", metavar="SECONDS", min=0, help="Seconds to wait for the state lock."
    ),
]
UnusedLockOption = Annotated[int, typer.Option("--lock-timeout", min=0, hidden=True)]
"""For `ci drift`, which takes no lock: earlier releases listed the option there."""
DetailedOption = Annotated[
    bool,
    typer.Option(
        DETAILED_EXITCODE, help="Exit code 0 without changes, 2 with changes, 1 on errors."
    ),
]


def ci_stages(
    directory: Path,
    plans: Path,
    backend_config: list[str] | None,
    lock_timeout_seconds: int,
    *,
    allow_types: list[str] | None = None,
    **judging: Any,
) -> Any:
    """Return the stages, wired."""
    from reconciler.bootstrap.pipeline.stages import CiOptions, pipeline  # noqa: PLC0415 - heavy

    return pipeline(
        CiOptions(
            directory=directory,
            plan_directory=plans,
            backend_config=tuple(backend_config or ()),
            lock_timeout_seconds=lock_timeout_seconds,
            allow_types=tuple(allow_types or ()),
            **judging,
        )
    )
