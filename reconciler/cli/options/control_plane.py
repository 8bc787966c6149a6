"""`--control-plane`: which cluster the sandbox has."""

import os
from pathlib import Path
from typing import Annotated, Literal

import typer

from reconciler.sandbox.control_plane.binaries import provide_binaries

ControlPlane = Literal["simulated", "kwok"]
ControlPlaneOption = Annotated[
    ControlPlane,
    typer.Option(help="kwok: a real control plane, built with Go the first time."),
]


def programs_of(control_plane: ControlPlane) -> Path | None:
    """Return the directory of the control plane's programs; None for the simulated cluster.

    Raises:
        ToolError: There are none and none can be built.
    """
    if control_plane == "simulated":
        return None
    environment = os.environ  # noqa: TID251 - Go and its cache are found there
    return provide_binaries(environment, lambda text: typer.echo(text, err=True))
