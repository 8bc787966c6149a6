"""`reconciler demo`: a complete example in the sandbox."""

import signal
from pathlib import Path
from typing import Annotated, Literal

import typer

from reconciler.cli.options.control_plane import ControlPlaneOption, programs_of
from reconciler.cli.options.folder import written_folder

EXAMPLE = "reconciler demo --out demo-report"


def command(
    *,
    out: Annotated[
        Path, typer.Option(metavar="DIR", parser=written_folder, help="Folder for the report.")
    ] = Path("demo-report"),
    trace: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="CSV of pods (pod, cpu_milli, memory_mib, creation_s, deletion_s; .gz too)"
            " to run instead of the example manifests.",
        ),
    ] = None,
    control_plane: ControlPlaneOption = "simulated",
    provider: Annotated[
        Literal["ec2-fleet", "asg", "mixed"],
        typer.Option(help="What launches the nodes: EC2 Fleets, Auto Scaling groups, or both."),
    ] = "ec2-fleet",
) -> None:
    """Run a complete example: commit, render, apply, scale up, run pods, scale in, plan again.

    It needs git and Terraform. Everything listens on loopback and is removed at the end.
    """
    from reconciler.demo.requirements import check_requirements  # noqa: PLC0415 - before the rest

    check_requirements()
    from reconciler.demo.narrator import Narrator  # noqa: PLC0415 - rich and boto3 are slow
    from reconciler.demo.story import Demo  # noqa: PLC0415 - as above
    from reconciler.demo.workloads import example_waves, trace_waves  # noqa: PLC0415 - as above

    waves = trace_waves(trace) if trace else example_waves()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    Demo(Narrator(), waves, out, programs_of(control_plane), provider).run()
