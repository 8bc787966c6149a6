"""Checks what the demo needs in addition to Python."""

import shutil

from reconciler.model.errors import ToolError
from reconciler.sandbox.requirements import PACKAGES, check_packages


def check_requirements() -> None:
    """Check before anything is started.

    Raises:
        ToolError: A program or a package is missing.
    """
    check_packages((*PACKAGES, "matplotlib", "plotext"))
    for program, without in (
        ("git", "validate, render, plan and run work without it"),
        ("terraform", "validate, render, plan, run and the second loop work without it"),
    ):
        if shutil.which(program) is None:
            raise ToolError(program, "is not on the PATH; the demo needs it", without)
